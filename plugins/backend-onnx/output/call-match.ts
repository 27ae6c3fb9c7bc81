import type { CallSyntax } from "../chat-format/call-syntax.ts"
import { literal, literals, type Match, skipSpace } from "./text-match.ts"

/** The head of a call: its name and everything else before the arguments. */
export interface Head {
  readonly name: string
  /** Index at which the arguments begin. */
  readonly at: number
}

// longer text is not a head: names have at most 64 characters
const longestHead = 1_000

const names = /"((?:[^"\\]|\\[\s\S])*)"/y

/** Matches a JSON string at `from` that names one of the tools. */
const nameAt = (text: string, from: number, tools: ReadonlySet<string>): Head | "no" | "more" => {
  const at = skipSpace(text, from)
  if (at === text.length) return "more"
  if (text[at] !== '"') return "no"
  names.lastIndex = at
  const found = names.exec(text)
  if (!found) return "more"
  return tools.has(found[1]!) ? { name: found[1]!, at: names.lastIndex } : "no"
}

/** Matches `{"name": ..., "arguments":` and the brace behind it. */
const itemHead = (
  text: string,
  from: number,
  syntax: CallSyntax,
  tools: ReadonlySet<string>,
): Head | "no" | "more" => {
  const begins = literals(text, from, ["{", '"name"', ":"])
  if (typeof begins === "string") return begins
  const named = nameAt(text, begins, tools)
  if (typeof named === "string") return named
  const ends = literals(text, named.at, [",", `"${syntax.argumentsKey}"`, ":", "{"])
  return typeof ends === "string" ? ends : { name: named.name, at: ends - 1 }
}

/** Limits a head's length, so that the result is the same for whole text and for pieces. */
const bounded = (text: string, match: Head | "no" | "more"): Head | "no" | "more" => {
  const length = (typeof match === "string" ? text.length : match.at) - skipSpace(text, 0)
  return length > longestHead ? "no" : match
}

/** Matches the head of a group's first call, from the trigger on. */
export const groupHead = (
  text: string,
  syntax: CallSyntax,
  tools: ReadonlySet<string>,
): Head | "no" | "more" => {
  const { trigger, prefix, open } = syntax
  let at: Match = literals(text, 0, trigger === undefined ? [] : [trigger])
  if (prefix !== undefined) {
    const tagged = literal(text, 0, prefix)
    if (tagged !== "no") at = tagged
  }
  if (typeof at === "number" && open.trim()) at = literal(text, at, open.trim())
  return bounded(text, typeof at === "string" ? at : itemHead(text, at, syntax, tools))
}

/** Matches the head of a further call of the group, from the separator on. */
export const nextHead = (
  text: string,
  syntax: CallSyntax,
  tools: ReadonlySet<string>,
): Head | "no" | "more" => {
  const at = literal(text, 0, syntax.separator?.trim() ?? "")
  return bounded(text, typeof at === "string" ? at : itemHead(text, at, syntax, tools))
}

/**
 * Matches the text behind the arguments. `separated`: another call follows in the group, otherwise
 * the group is closed.
 */
export const afterArguments = (
  text: string,
  syntax: CallSyntax,
): { readonly at: number; readonly separated: boolean } | "no" | "more" => {
  const brace = literal(text, 0, "}")
  if (typeof brace === "string") return brace
  const { close, separator } = syntax
  const next = separator === undefined ? "no" : literal(text, brace, separator.trim())
  if (typeof next === "number") return { at: brace, separated: true }
  const closed = literals(text, brace, close.split(/\s+/).filter(Boolean))
  if (typeof closed === "number" && (close || next === "no"))
    return { at: closed, separated: false }
  return closed === "no" && next === "no" ? "no" : "more"
}
