import type { Encoding } from "tokenizers"

/** A text with the offsets, in code points, at which cached prefixes end. */
export interface MarkedText {
  readonly text: string
  readonly cuts: readonly number[]
}

/**
 * Inserts the placeholder `sign` at the offsets, but before white space at the end of the text,
 * which a template may trim.
 */
export const withSigns = (text: string, offsets: readonly number[], sign: string): string => {
  const end = text.trimEnd().length
  const places = [...new Set(offsets.map((offset) => Math.min(offset, end)))].sort((a, b) => a - b)
  let from = 0
  let signed = ""
  for (const place of places) {
    signed += text.slice(from, place) + sign
    from = place
  }
  return signed + text.slice(from)
}

/**
 * Removes the placeholders from rendered text and returns where they were; with `strips` it removes
 * the white space that the text begins or ends with, too.
 */
export const withoutSigns = (
  signed: string,
  sign: string,
  strips: { readonly begin?: boolean; readonly end?: boolean } = {},
): MarkedText => {
  const parts = signed.split(sign)
  let characters = 0
  const cuts = parts.slice(0, -1).map((part) => {
    characters += Array.from(part).length
    return characters
  })
  const text = parts.join("")
  const begun = strips.begin ? text.trimStart() : text
  const kept = strips.end ? begun.trimEnd() : begun
  const gone = text.length - begun.length
  return { text: kept, cuts: cuts.map((cut) => Math.max(0, cut - gone)) }
}

/** Returns for each cut the number of tokens that end before it. */
export const tokensBefore = (
  encoding: Pick<Encoding, "getOffsets">,
  cuts: readonly number[],
): readonly number[] => {
  if (!cuts.length) return []
  const ends = encoding.getOffsets().map(([, end]) => end ?? 0)
  return cuts.map((cut) => {
    const first = ends.findIndex((end) => end > cut)
    return first < 0 ? ends.length : first
  })
}
