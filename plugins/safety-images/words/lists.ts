import type { Reach } from "./vocabulary.ts"

/** A line of a list: a word or several in a row, and what it counts. */
export interface Term {
  readonly words: readonly { readonly word: string; readonly reach: Reach }[]
  readonly weight: number
}

const form = /^(\*?)([a-z0-9]+)(\*?)$/

const wordOf = (text: string): Term["words"][number] | undefined => {
  const [, before, word, after] = form.exec(text) ?? []
  if (word === undefined || (before !== "" && after === "")) return undefined
  return { word, reach: before === "" ? (after === "" ? "whole" : "start") : "part" }
}

/**
 * Reads a term: `word`, `word*` (its beginning), `*word*` (any part of a word), `several words`,
 * each perhaps with a weight (`word = 0.5`; 1 by default). Returns what is wrong with it as a text.
 */
export const parseTerm = (line: string): Term | string => {
  const [text = "", weight = "1", ...rest] = line.split("=").map((part) => part.trim())
  const parts = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .split(/[\s-]+/)
  const words = parts.map(wordOf)
  if (rest.length > 0 || words.length > 8 || words.some((word) => word === undefined))
    return "expected a word, `word*`, `*word*`, or up to eight words in a row, of letters and digits"
  const number = Number(weight)
  return number > 0 && number <= 1
    ? { words: words as Term["words"], weight: number }
    : "expected a weight above 0, up to 1"
}

/** The terms of a file, a line each; `#` begins a comment. Throws an `Error` that names the line. */
export const parseList = (name: string, text: string): readonly Term[] =>
  text.split("\n").flatMap((line, at) => {
    const content = line.replace(/#.*/, "").trim()
    if (content === "") return []
    const term = parseTerm(content)
    if (typeof term === "string") throw new Error(`${name}, line ${at + 1}: ${term}`)
    return [term]
  })
