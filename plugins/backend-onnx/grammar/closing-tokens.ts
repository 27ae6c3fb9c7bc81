import { bytesOfToken, type GrammarVocabulary, isAllowed, sizeOf } from "./grammar-vocabulary.ts"

const codesOf = (text: string): readonly number[] => [...Buffer.from(text)]

/**
 * First bytes, those that lead to an end soonest first: closing brackets, then short values, then
 * what opens more to close.
 */
const orderBetween = codesOf('}]":,10tfn{[ ')
/** In a string: its end, then one character of each kind that a pattern may require. */
const orderInText = codesOf('"0aA-. _@/:1bB')

/** The number of kinds of characters that are tried in turn. */
const widest = 8

const allBytes = Array.from({ length: 256 }, (_, byte) => byte)

const isClosers = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x7d || byte === 0x5d)

/** Map key of bytes. */
const keyOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

/** The few tokens of a vocabulary that the search for a completion tries. */
export class ClosingTokens {
  /**
   * `}}]`, the longest first; then the shortest token that begins with a byte, in order of
   * preference.
   */
  private readonly between: readonly number[]
  /** The same inside a string, where a brace is text. */
  private readonly inText: readonly number[]
  private readonly letters: readonly number[]
  private readonly byBytes = new Map<string, number>()
  private longest = 1

  constructor(vocabulary: GrammarVocabulary) {
    const closers: { readonly id: number; readonly length: number }[] = []
    const shortest = new Map<number, { readonly id: number; readonly length: number }>()
    for (let id = 0; id < sizeOf(vocabulary); id++) {
      const bytes = bytesOfToken(vocabulary, id)
      const { length } = bytes
      if (length === 0) continue
      this.longest = Math.max(this.longest, length)
      const key = keyOf(bytes)
      if (!this.byBytes.has(key)) this.byBytes.set(key, id)
      if (length > 1 && isClosers(bytes)) closers.push({ id, length })
      if (length < (shortest.get(bytes[0]!)?.length ?? Number.POSITIVE_INFINITY))
        shortest.set(bytes[0]!, { id, length })
    }
    const singles = (order: readonly number[]) =>
      [...new Set([...order, ...allBytes])].flatMap((byte) => shortest.get(byte)?.id ?? [])
    this.between = [
      ...closers.sort((a, b) => b.length - a.length).map(({ id }) => id),
      ...singles(orderBetween),
    ]
    this.inText = singles(orderInText)
    this.letters = codesOf("aksxzAKSXZ").flatMap((byte) => shortest.get(byte)?.id ?? [])
  }

  /** Returns at most `most` tokens that the mask allows, the most promising first. */
  promising(mask: Uint32Array, most: number): readonly number[] {
    const found: number[] = []
    for (const id of this.isInText(mask) ? this.inText : this.between) {
      if (isAllowed(mask, id)) found.push(id)
      if (found.length === most) break
    }
    return found
  }

  /**
   * Returns one token: the end of a string wherever it may end, otherwise a character of another
   * kind each `turn`, so that a pattern gets what it requires.
   */
  inTurn(mask: Uint32Array, turn: number): readonly number[] {
    const found = this.promising(mask, widest)
    if (found.length === 0 || !this.isInText(mask) || found[0] === this.inText[0])
      return found.slice(0, 1)
    return [found[turn % found.length]!]
  }

  /**
   * Whether the mask is inside a string: between the parts of a document no letter is allowed but
   * the first of `true`, `false` and `null`.
   */
  private isInText(mask: Uint32Array): boolean {
    return this.letters.some((id) => isAllowed(mask, id))
  }

  /** Returns the longest allowed token that is a prefix of `bytes`. */
  along(mask: Uint32Array, bytes: Uint8Array): number | undefined {
    for (let length = Math.min(bytes.length, this.longest); length > 0; length--) {
      const id = this.byBytes.get(keyOf(bytes.subarray(0, length)))
      if (id !== undefined && isAllowed(mask, id)) return id
    }
    return undefined
  }
}
