import { RecursiveCharacterTextSplitter } from "@langchain/textsplitters"
import { countCharacters } from "./code-points.ts"

/** Paragraphs, lines, sentences of all scripts, clauses, words; then wherever a word ends. */
const separators = [
  "\f",
  "\r\n\r\n",
  "\n\n",
  "\n",
  "\r",
  ". ",
  "? ",
  "! ",
  "。",
  "！",
  "？",
  "।",
  "؟ ",
  "۔ ",
  "…",
  "; ",
  "；",
  ", ",
  "，",
  "、",
  "،",
  " ",
  "",
]

// Chinese, Japanese, Thai and others write no spaces; the dictionaries of ICU know their words
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" })

/** UTF-16 units, enough to tell where words end in the middle. */
const around = 24

/** The last end of a word in the units before a place, or the place itself if there is none. */
const wordEndBefore = (text: string, place: number): number => {
  const first = place - around
  let end = 0
  for (const { index } of segmenter.segment(text.slice(first, place + around)))
    if (index <= around) end = index
  if (end > 0) return first + end
  return /[\udc00-\udfff]/.test(text[place]!) ? place - 1 : place
}

const after = (text: string, separator: string): string[] => {
  const parts: string[] = []
  let from = 0
  for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, from)) {
    parts.push(text.slice(from, at + separator.length))
    from = at + separator.length
  }
  if (from < text.length) parts.push(text.slice(from))
  return parts
}

/** The library's, but a separator ends a piece, and no character is cut in two. */
class Splitter extends RecursiveCharacterTextSplitter {
  protected override splitOnSeparator(text: string, separator: string): string[] {
    return separator === "" ? this.wordsOf(text) : after(text, separator)
  }

  /** Runs of words, as looking up every word would take a second for 100,000 characters. */
  private wordsOf(text: string): string[] {
    const length = Math.max(2 * around, Math.floor(this.chunkSize / 4))
    const runs: string[] = []
    for (let from = 0; from < text.length; ) {
      const end = from + length < text.length ? wordEndBefore(text, from + length) : text.length
      runs.push(text.slice(from, end))
      from = end
    }
    return runs
  }
}

export type SplitText = (text: string) => Promise<readonly string[]>

/**
 * Divides a text into pieces of at most `characters` code points that lie one after another, with
 * nothing but white space between, before and after them.
 */
export const makeSplitText = (characters: number): SplitText => {
  const splitter = new Splitter({
    chunkSize: characters,
    chunkOverlap: 0,
    keepSeparator: true,
    separators,
    lengthFunction: countCharacters,
  })
  return (text) => splitter.splitText(text)
}
