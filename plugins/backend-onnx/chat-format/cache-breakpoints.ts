import type { Encoding } from "tokenizers"

/** A text with the places, in characters from its beginning, where marked prefixes end. */
export interface MarkedText {
  readonly text: string
  readonly cuts: readonly number[]
}

/** Puts `sign` at each of the offsets; before the white space at the end of the text, which a template may trim. */
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

/** Takes the signs out again. */
export const withoutSigns = (signed: string, sign: string): MarkedText => {
  const parts = signed.split(sign)
  let characters = 0
  const cuts = parts.slice(0, -1).map((part) => {
    characters += Array.from(part).length
    return characters
  })
  return { text: parts.join(""), cuts }
}

/** How many tokens lie wholly before each cut. */
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
