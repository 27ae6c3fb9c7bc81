import type { PatternNode } from "./parser.ts"

/** A match tries at most `choices` times the text's length to the power of `degree`. */
interface Backtracking {
  readonly choices: number
  readonly degree: number
}

const none: Backtracking = { choices: 1, degree: 0 }
/** How a pattern backtracks. Undefined: exponentially, or it looks around itself. */
const backtrackingOf = (node: PatternNode): Backtracking | undefined => {
  if (node.kind === "set" || node.kind === "start" || node.kind === "end") return none
  if (node.kind === "repeat") return backtrackingOfRepeat(node)
  if (!("parts" in node)) return undefined
  const parts = node.parts.map(backtrackingOf)
  if (!parts.every((part) => part !== undefined)) return undefined
  return node.kind === "or"
    ? {
        choices: parts.reduce((sum, { choices }) => sum + choices, 0),
        degree: Math.max(...parts.map(({ degree }) => degree)),
      }
    : {
        choices: parts.reduce((product, { choices }) => product * choices, 1),
        degree: parts.reduce((sum, { degree }) => sum + degree, 0),
      }
}

const backtrackingOfRepeat = ({
  of,
  least,
  most,
}: Extract<PatternNode, { readonly kind: "repeat" }>): Backtracking | undefined => {
  if (of.kind === "set") return least === most ? none : { choices: 1, degree: 1 }
  const inside = most <= 1 ? backtrackingOf(of) : undefined
  return inside && { ...inside, choices: inside.choices + 1 }
}

const isAnchored = (node: PatternNode): boolean =>
  node.kind === "start" ||
  (node.kind === "concat" && node.parts[0] !== undefined && isAnchored(node.parts[0])) ||
  (node.kind === "or" && node.parts.every(isAnchored))

/**
 * Returns how many steps an engine that backtracks takes at most for a text of some length.
 * Undefined: exponentially many, or the pattern looks around itself.
 */
export const backtrackedSteps = (node: PatternNode): ((length: number) => number) | undefined => {
  const found = backtrackingOf(node)
  if (!found) return undefined
  // a match may begin anywhere
  const degree = found.degree + (isAnchored(node) ? 0 : 1)
  return (length) => found.choices * (length + 1) ** degree
}
