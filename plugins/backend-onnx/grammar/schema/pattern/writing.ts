import { writeSet } from "./char-set.ts"
import type { Languages, Term } from "./language.ts"
import { refuse } from "./parser.ts"

const longest = 100_000
const endless = Number.POSITIVE_INFINITY

/** Writes a plain language for llguidance, in brackets where something may stand beside it. */
export const write = (languages: Languages, term: Term): string => {
  const written = new Map<Term, string>()
  const again = (one: Term): string => {
    const known = written.get(one)
    if (known !== undefined) return known
    const text = fresh(one)
    if (text.length > longest) refuse("it is too complex to be written out")
    written.set(one, text)
    return text
  }
  const single = (one: Term): string =>
    ["set", "or"].includes(languages.shape(one).kind) ? again(one) : `(?:${again(one)})`
  const fresh = (one: Term): string => {
    const shape = languages.shape(one)
    if (shape.kind === "set") return writeSet(shape.set)
    if (shape.kind === "concat") return languages.sequence(one).map(again).join("")
    if (shape.kind === "or") return `(?:${shape.parts.map(again).join("|")})`
    if (shape.kind === "repeat") return single(shape.of) + times(shape.least, shape.most)
    if (shape.kind === "empty") return ""
    return shape.kind === "never" ? writeSet([]) : refuse("it is too complex to be written out")
  }
  return again(term)
}

const times = (least: number, most: number): string => {
  if (least === 0 && most === 1) return "?"
  if (most === endless && least <= 1) return least === 0 ? "*" : "+"
  if (most === endless) return `{${least},}`
  return least === most ? `{${least}}` : `{${least},${most}}`
}
