import type { Json } from "../../../core/json.ts"

/**
 * Pieces of a Lark grammar as llguidance reads it
 * (https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md).
 */
const quoted = (text: string): string => JSON.stringify(text)

const escaped = (text: string): string =>
  text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&").replaceAll("\n", "\\n")

/**
 * A literal in which control tokens, which have no bytes, are named by their id. Empty for an empty
 * text.
 */
export const literalOf = (text: string, markers: Readonly<Record<string, number>>): string => {
  const names = Object.keys(markers)
  if (!names.length) return text && quoted(text)
  return text
    .split(new RegExp(`(${names.map(escaped).join("|")})`))
    .map((piece, index) => (index % 2 ? `<[${markers[piece]}]>` : piece && quoted(piece)))
    .filter(Boolean)
    .join(" ")
}

/** A terminal for one of several texts. */
export const oneOf = (texts: readonly string[]): string => texts.map(quoted).join(" | ")

/** A terminal for the texts that match what `wholePattern` returns, which has no plain slashes. */
export const matching = (whole: string): string => `/${whole.slice(1, -1)}/`

export const anyText = "/(?s:.*)/"

/** A terminal for texts that don't contain `wanted`. */
export const without = (wanted: string): string =>
  `${anyText} & ~/(?s:.*)${escaped(wanted)}(?s:.*)/`

/** A terminal for texts that are not blank and begin neither with a brace nor with `prefix`. */
export const plainBeginning = (prefix: string | undefined): string => {
  const beginning = "/\\s*[^\\s{](?s:.*)/"
  return prefix === undefined ? beginning : `${beginning} & ~/\\s*${escaped(prefix)}(?s:.*)/`
}

export const documentOf = (schema: Json): string => `%json ${JSON.stringify(schema)}`

export const sequence = (...parts: readonly string[]): string => parts.filter(Boolean).join(" ")
