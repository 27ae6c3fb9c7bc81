import type { Term } from "./lists.ts"
import type { Token } from "./tokens.ts"

/** Whether harmless phrases cover all tokens from the first to before the last. */
export type Covers = (from: number, to: number) => boolean

const isWord = (text: string | undefined, { word, reach }: Term["words"][number]): boolean =>
  text !== undefined &&
  (text === word || text === `${word}s` || (reach !== "whole" && text.startsWith(word)))

/**
 * Finds harmless phrases, as they are written: tricks of spelling have no place in them. Takes time
 * in proportion to the number of tokens.
 */
export const allowedIn = (terms: readonly Term[]): ((tokens: readonly Token[]) => Covers) => {
  const rows = new Map<string, Term[]>()
  for (const term of terms) {
    const first = term.words[0]!
    // words that begin so are found by their first letter
    const key = first.reach === "whole" ? first.word : first.word[0]!
    rows.set(key, [...(rows.get(key) ?? []), term])
  }
  const beginningAt = ({ text }: Token): readonly Term[] =>
    [text, text.replace(/s$/, ""), text[0] ?? ""].flatMap((key) => rows.get(key) ?? [])
  return (tokens) => {
    const covered = new Set<number>()
    for (const [at, token] of tokens.entries())
      for (const { words } of beginningAt(token))
        if (words.every((word, n) => isWord(tokens[at + n]?.text, word)))
          for (let n = 0; n < words.length; n++) covered.add(at + n)
    return (from, to) => {
      for (let at = from; at < to; at++) if (!covered.has(at)) return false
      return true
    }
  }
}
