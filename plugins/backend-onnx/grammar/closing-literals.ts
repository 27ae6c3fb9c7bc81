import type { Grammar } from "./constraint.ts"

const most = 24

const strings = /"(?:[^"\\]|\\.)*"/g
const patterns = /(?<=[\s:|&~(])\/(?:\\.|[^/\\])+\//g
/** In a pattern: sets, groups with flags and counts, which are no literals. */
const notLiteral = /\[(?:\\.|[^\]\\])*\]|\(\?[a-z]*:|(?<!\\[xpP])\{[0-9,]*\}|\\[pP]\{[^}]*\}/g
const characters = /\\x\{(?<hex>[0-9a-f]+)\}|\\(?<escaped>.)|(?<plain>[^\\^$.|?*+()/])/gu
const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" }

const charactersIn = (pattern: string): readonly string[] =>
  [...pattern.replace(notLiteral, "").matchAll(characters)].flatMap(({ groups = {} }) => {
    const { hex, escaped, plain } = groups
    if (hex) return [String.fromCodePoint(Number.parseInt(hex, 16))]
    if (plain) return [plain]
    // classes such as \d
    return escaped && !/[a-zA-Z]/.test(escaped) ? [escaped] : (escapes[escaped ?? ""] ?? [])
  })

const charactersOf = (string: string): readonly string[] => {
  try {
    return [(JSON.parse(string) as string).slice(0, 1)]
  } catch {
    return []
  }
}

/**
 * Returns first bytes of what a grammar has word by word, at which free text before it ends. Empty
 * for documents, and beside them: those end as JSON does.
 */
export const literalsIn = (grammar: Grammar): readonly number[] => {
  if (grammar.kind === "schema" || grammar.lark.includes("%json")) return []
  const without = grammar.lark.replace(patterns, " ")
  const found = [
    ...(without.match(strings) ?? []).flatMap(charactersOf),
    ...(grammar.lark.replace(strings, " ").match(patterns) ?? []).flatMap(charactersIn),
  ]
  const bytes = found.flatMap((character) => Buffer.from(character)[0] ?? [])
  return [...new Set(bytes)].slice(0, most)
}
