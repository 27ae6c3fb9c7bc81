import { Tokenizer } from "tokenizers"

export interface OwnCountInput {
  /** A `tokenizer.json`. */
  readonly file: string
  readonly texts: readonly string[]
}

/** Longer texts are cut, which changes their count by a token or two at each cut. */
const pieceCharacters = 16_384

// each thread of the pool has its own
const loaded = new Map<string, Tokenizer>()

const tokenizerOf = (file: string): Tokenizer => {
  const known = loaded.get(file)
  if (known) return known
  const tokenizer = Tokenizer.fromFile(file)
  // the file may enable padding to a fixed length and silent truncation
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  loaded.set(file, tokenizer)
  return tokenizer
}

const count = async (tokenizer: Tokenizer, text: string): Promise<number> => {
  let tokens = 0
  for (let at = 0; at < text.length; at += pieceCharacters) {
    const piece = text.slice(at, at + pieceCharacters)
    tokens += (await tokenizer.encode(piece, null, { addSpecialTokens: false })).getLength()
  }
  return tokens
}

/** Runs in the thread pool. Returns the tokens of each text, without special ones. */
export default async ({ file, texts }: OwnCountInput): Promise<readonly number[]> => {
  const tokenizer = tokenizerOf(file)
  const counts: number[] = []
  for (const text of texts) counts.push(await count(tokenizer, text))
  return counts
}
