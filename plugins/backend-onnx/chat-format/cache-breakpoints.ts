import type { Encoding } from "tokenizers"
import { stripped, whiteSpace } from "../tokenizer/python-methods.ts"

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
  const end = stripped(text, undefined, { begin: false, end: true }).length
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
  const begun = strips.begin ? stripped(text, whiteSpace, { begin: true, end: false }) : text
  const kept = strips.end ? stripped(begun, whiteSpace, { begin: false, end: true }) : begun
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
