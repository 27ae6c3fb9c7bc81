import { firstCharacters, type Tenant } from "../../../core/index.ts"

// not PostgreSQL's own parser: what it takes for a word depends on the locale of the database, and
// in scripts without spaces it finds none

/** Scripts without spaces between words: each two neighbours are a word. */
const unspaced =
  "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}]"
const runs = new RegExp(`((?:${unspaced}\\p{M}*)+)|(?:(?!${unspaced})[\\p{L}\\p{N}]\\p{M}*)+`, "gu")

/** Longer ones are cut: PostgreSQL takes lexemes of 2,046 bytes. */
const maxLength = 64

const pairsOf = (run: string): readonly string[] => {
  const characters = Array.from(run)
  if (characters.length < 3) return [run]
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`)
}

/** The words of a text, in order, in lower case and compatibility form (NFKC). */
export const wordsIn = (text: string): readonly string[] => {
  const folded = text.normalize("NFKC").toLowerCase()
  return Array.from(folded.matchAll(runs)).flatMap(([run, pairs]) =>
    pairs === undefined ? [firstCharacters(run, maxLength)] : pairsOf(pairs),
  )
}

const quoted = (lexeme: string): string => `'${lexeme.replaceAll(/['\\]/g, "$&$&")}'`

/** No word has this form; with it, one index of words serves each tenant alone. */
const tenantLexeme = ({ account, mode }: Tenant): string => quoted(`@${mode}:${account}`)

/** PostgreSQL's limits of a `tsvector`. */
const maxPosition = 16_383
const maxPositions = 255

/** The `words` of a chunk: a `tsvector` as text, with the tenant's lexeme. */
export const wordsOfChunk = (tenant: Tenant, text: string): string => {
  const positions = new Map<string, number[]>()
  for (const [at, word] of wordsIn(text).entries()) {
    const found = positions.get(word)
    if (!found) positions.set(word, [Math.min(at + 1, maxPosition)])
    else if (found.length < maxPositions) found.push(Math.min(at + 1, maxPosition))
  }
  const lexemes = Array.from(positions, ([word, found]) => `${quoted(word)}:${found.join(",")}`)
  return [tenantLexeme(tenant), ...lexemes].join(" ")
}

/** A `tsquery` as text: chunks of the tenant that have one of the words, of which there is one. */
export const anyOfWords = (tenant: Tenant, words: readonly string[]): string =>
  `${tenantLexeme(tenant)} & (${words.map(quoted).join(" | ")})`

/** A `tsquery` as text: chunks of anybody that have the word. */
export const oneWord = quoted
