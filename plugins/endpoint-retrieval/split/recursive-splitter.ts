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

  private wordsOf(text: string): string[] {
    const words: string[] = []
    for (const { segment } of segmenter.segment(text))
      if (segment.length < this.chunkSize) words.push(segment)
      else for (const character of segment) words.push(character)
    return words
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
