import type { Tokenizer } from "tokenizers"

/** Tokens `from` to `to` of a text. */
export interface TokenRange {
  readonly from: number
  readonly to: number
}

export interface TokenWindows {
  readonly windows: readonly TokenRange[]
  /** Where the first window of what follows begins, in tokens; absent: all was read. */
  readonly next?: number
}

/**
 * What a window shares with the one before it, so that a sentence at its border is read whole: this
 * part of it, and at most 128 tokens.
 */
export const overlapOf = (capacity: number, part: number): number =>
  Math.min(128, Math.floor(capacity / part))

/**
 * Divides `tokens` tokens into overlapping windows of at most `capacity`. Of a text that `goesOn`
 * behind them, the last window is left to the next part, unless it is the only one.
 */
export const windowsOf = (
  tokens: number,
  capacity: number,
  {
    goesOn = false,
    most = Number.POSITIVE_INFINITY,
    overlap = overlapOf(capacity, 4),
  }: { readonly goesOn?: boolean; readonly most?: number; readonly overlap?: number } = {},
): TokenWindows => {
  const windows: TokenRange[] = []
  const step = Math.max(1, capacity - overlap)
  for (let from = 0; from < tokens && windows.length < most; from += step) {
    const isLast = from + capacity >= tokens
    if (isLast && goesOn && from > 0) return { windows, next: from }
    windows.push({ from, to: Math.min(from + capacity, tokens) })
    if (isLast) break
  }
  if (!goesOn || windows.length >= most) return { windows }
  return { windows, next: tokens > overlap ? tokens - overlap : tokens }
}

/** Few texts have more characters a token. */
export const likelyCharacters = 8

/** A part of a document, which is read piece by piece. */
export interface DocumentPart {
  readonly text: string
  /** The document has more text behind this part. */
  readonly goesOn: boolean
  /** So many tokens, and windows, of the document may still be read. */
  readonly maxTokens: number
  readonly maxWindows: number
  /** So many sequences may still be made of the document's windows. */
  readonly maxSequences: number
}

/** The inputs of a part's windows, and where the next part begins, if one is to be read. */
export interface ReadPart<Input> {
  readonly windows: readonly Input[]
  readonly next?: { readonly characters: number; readonly tokens: number }
}

/**
 * `queryTooLong`: a lower bound of the tokens of query and instruction, which leave no capacity for
 * a document.
 */
export type ReadParts<Input> =
  | { readonly parts: readonly ReadPart<Input>[] }
  | { readonly queryTooLong: number }
  | { readonly refused: string }

/** What is read of a part without text. */
export const blankPart = ({ text, goesOn }: DocumentPart): ReadPart<never> => ({
  windows: [],
  ...(goesOn && { next: { characters: text.length, tokens: 0 } }),
})

/** A tokenized part and its windows. */
export interface TokenizedPart extends TokenWindows {
  readonly ids: readonly number[]
  /** The number of UTF-16 units before a token. */
  unitsBefore(token: number): number
}

/** Offsets of tokens count code points. */
const unitsIn = (text: string, offsets: readonly (readonly number[])[]) => {
  const characters = Array.from(text)
  return (token: number): number => {
    const start = offsets[token]?.[0]
    if (start === undefined) return text.length
    return characters.length === text.length ? start : characters.slice(0, start).join("").length
  }
}

/**
 * Tokenizes a part, without special tokens, and divides it into windows of `capacity` tokens, of
 * each of which so many sequences are made.
 */
export const tokenizedPart = async (
  tokenizer: Tokenizer,
  { text, goesOn, maxTokens, maxWindows, maxSequences }: DocumentPart,
  capacity: number,
  sequences = 1,
): Promise<TokenizedPart> => {
  const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false })
  const ids = encoding.getIds()
  const isCut = ids.length >= maxTokens
  return {
    ...windowsOf(Math.min(ids.length, maxTokens), capacity, {
      goesOn: goesOn && !isCut,
      most: Math.min(maxWindows, Math.max(1, Math.floor(maxSequences / sequences))),
    }),
    ids,
    unitsBefore: unitsIn(text, encoding.getOffsets()),
  }
}

/** Where the next part begins; behind this one at the latest, and never where this one began. */
export const nextPart = (
  { next, unitsBefore }: TokenizedPart,
  { text }: DocumentPart,
): ReadPart<never>["next"] => {
  if (next === undefined) return undefined
  const characters = unitsBefore(next)
  return characters > 0 ? { characters, tokens: next } : { characters: text.length, tokens: next }
}
