import { WrittenNumber } from "../tokenizer/written-number.ts"

/**
 * Keeps text of users from becoming control tokens (prompt injection), without hiding it from the
 * chat template: a marker that occurs in no text
 * is inserted into everything that looks like a control token. After rendering, control tokens are
 * parsed first, then the markers are removed.
 * So content is tokenized exactly as written, and `<|im_end|>` from a user is ordinary text.
 */
export interface ControlGuard {
  shield(text: string): string
  /** A text that no other may follow to form a control token with it. */
  seal(text: string): string
  /** Rendered text in order: control tokens by id, and text without markers. */
  parse(rendered: string): readonly (number | string)[]
}

// supplementary private-use planes
const firstMarker = 0xf0000
const lastMarker = 0x10fffd

/** Returns a character that occurs in none of the texts; undefined when they use all of them. */
export const unusedCharacter = (texts: readonly string[]): string | undefined => {
  const used = new Set<number>()
  for (const text of texts)
    for (const match of text.matchAll(/[\u{f0000}-\u{10ffff}]/gu))
      used.add(match[0].codePointAt(0)!)
  for (let code = firstMarker; code <= lastMarker; code++)
    if (!used.has(code)) return String.fromCodePoint(code)
  return undefined
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

/**
 * Undefined when every marker occurs in the texts. Control tokens of a single character can't be
 * shielded, so they are never parsed.
 */
export const controlGuard = (
  controlTokens: Readonly<Record<string, number>>,
  texts: readonly string[],
): ControlGuard | undefined => {
  const marker = unusedCharacter(texts)
  if (marker === undefined) return undefined
  const names = Object.keys(controlTokens).filter((name) => [...name].length > 1)
  // the longest first, as one may be a prefix of another
  names.sort((a, b) => b.length - a.length)
  const same = (text: string) => text
  if (!names.length) return { shield: same, seal: same, parse: (rendered) => [rendered] }
  const alternatives = names.map(escaped).join("|")
  // a zero-width lookahead also finds overlapping ones
  const starts = new RegExp(`(?=(?:${alternatives}))(.)`, "gsu")
  const whole = new RegExp(`(${alternatives})`, "u")
  const parse = (rendered: string) =>
    rendered
      .split(whole)
      .map((piece, index) => (index % 2 ? controlTokens[piece]! : piece.replaceAll(marker, "")))
      .filter((piece) => piece !== "")
  const shield = (text: string) => text.replaceAll(starts, `$1${marker}`)
  return { shield, seal: (text) => text + marker, parse }
}

/** Shields every string in a value, property names included. */
export const shieldAll = <T>(guard: ControlGuard, value: T): T => {
  const shield = (item: unknown): unknown => {
    if (typeof item === "string") return guard.shield(item)
    if (Array.isArray(item)) return (item as readonly unknown[]).map(shield)
    if (typeof item !== "object" || item === null || item instanceof WrittenNumber) return item
    return Object.fromEntries(
      Object.entries(item).map(([key, inner]) => [guard.shield(key), shield(inner)]),
    )
  }
  return shield(value) as T
}
