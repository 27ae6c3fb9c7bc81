import type { Tokenizer } from "tokenizers"
import {
  blankPart,
  type DocumentPart,
  nextPart,
  type ReadPart,
  type ReadParts,
  tokenizedPart,
  windowsOf,
} from "./document-windows.ts"

/** Two texts as token ids, special tokens included, as cross-encoders read them. */
export interface TokenPair {
  readonly ids: Int32Array
  /**
   * Where the second segment (token type) begins: with the second text, or behind the last token
   * where both texts have the first.
   */
  readonly secondFrom: number
}

export interface RerankPairsRequest {
  readonly query: string
  readonly parts: readonly DocumentPart[]
  /** The longest query, in tokens. */
  readonly queryTokens: number
  /** The encoder's window: the longest pair, special tokens included. */
  readonly windowTokens: number
  /** Token type of the second text, where it is not the tokenizer's own. */
  readonly secondType?: number | undefined
}

/** Special tokens before, between and after the texts of a pair. */
interface PairFrame {
  readonly before: readonly number[]
  readonly between: readonly number[]
  readonly after: readonly number[]
  /** Token type of the second text. */
  readonly secondType: number
}

const readFrame = async (tokenizer: Tokenizer): Promise<PairFrame> => {
  const encoding = await tokenizer.encode("a", "a", { addSpecialTokens: true })
  const ids = encoding.getIds()
  const isSpecial = encoding.getSpecialTokensMask().map((flag) => flag === 1)
  const first = isSpecial.indexOf(false)
  const between = isSpecial.indexOf(true, first)
  const second = isSpecial.indexOf(false, between)
  const last = isSpecial.lastIndexOf(false)
  return {
    before: ids.slice(0, first),
    between: ids.slice(between, second),
    after: ids.slice(last + 1),
    secondType: encoding.getTypeIds()[second]!,
  }
}

const frames = new WeakMap<Tokenizer, Promise<PairFrame>>()

const frameOf = (tokenizer: Tokenizer): Promise<PairFrame> => {
  const known = frames.get(tokenizer) ?? readFrame(tokenizer)
  frames.set(tokenizer, known)
  return known
}

/** Part of a window that a query may take; the rest is left to documents. */
const largestShare = 0.75

/** Tokens of a query and a document, so that each has a window. */
const leastCapacity = 4

/** Characters of a query for each of its tokens. */
const mostCharacters = 16

/** A query that leaves little of the window is read in windows of half of it. */
const queryWindows = (ids: readonly number[], capacity: number): readonly (readonly number[])[] =>
  ids.length <= capacity * largestShare
    ? [ids]
    : windowsOf(ids.length, Math.floor(capacity / 2)).windows.map(({ from, to }) =>
        ids.slice(from, to),
      )

/**
 * Tokenizes the pairs of query and document, one for each window of a document, or several where
 * the query is longer than its share of the encoder's window.
 */
export const rerankPairs = async (
  tokenizer: Tokenizer,
  { query, parts, queryTokens, windowTokens, ...given }: RerankPairsRequest,
): Promise<ReadParts<readonly TokenPair[]>> => {
  const { before, between, after, ...own } = await frameOf(tokenizer)
  const isTyped = (given.secondType ?? own.secondType) > 0
  // what is longer has more tokens, or is no text
  const start = query.slice(0, queryTokens * mostCharacters)
  const ids = (await tokenizer.encode(start, null, { addSpecialTokens: false })).getIds()
  if (ids.length > queryTokens || start.length < query.length)
    return { queryTooLong: Math.max(ids.length, queryTokens + 1) }
  const capacity = windowTokens - before.length - between.length - after.length
  if (capacity < leastCapacity) return { queryTooLong: ids.length }
  const queries = queryWindows(ids, capacity)
  const left = capacity - Math.max(...queries.map((one) => one.length))
  const pairsOf = (document: readonly number[]) =>
    queries.map((one): TokenPair => {
      const start = [...before, ...one, ...between]
      const ids = Int32Array.from([...start, ...document, ...after])
      return { ids, secondFrom: isTyped ? start.length : ids.length }
    })
  const read: ReadPart<readonly TokenPair[]>[] = []
  for (const part of parts) {
    if (!part.text.trim()) {
      read.push(blankPart(part))
      continue
    }
    const tokenized = await tokenizedPart(tokenizer, part, left, queries.length)
    const next = nextPart(tokenized, part)
    read.push({
      windows: tokenized.windows.map(({ from, to }) => pairsOf(tokenized.ids.slice(from, to))),
      ...(next && { next }),
    })
  }
  return { parts: read }
}
