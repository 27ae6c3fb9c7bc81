/** A grammar did not compile within its bounds, or failed while it constrained an answer. */
export class GrammarFailed extends Error {
  override readonly name: string = "GrammarFailed"
  readonly why: "grammar" | "grammarLate" | "deadEnd" = "grammar"
}

/** The thread of a grammar did not answer in time, which says nothing about the grammar. */
export class GrammarLate extends GrammarFailed {
  override readonly why = "grammarLate"

  constructor() {
    super("the thread of the grammars does not answer")
  }
}

/**
 * No token was left that a valid document could go on with, and no earlier choice that could be
 * made anew led out of it.
 */
export class DeadEnd extends GrammarFailed {
  override readonly why = "deadEnd"

  constructor() {
    super("no valid document was found from here on")
  }
}

/**
 * A bit for each token: bit `id & 31` of word `id >> 5` allows it. Tokens beyond the end of the
 * mask are forbidden.
 */
export type TokenMask = Uint32Array

export const allows = (mask: TokenMask, id: number): boolean =>
  (mask[id >> 5]! & (1 << (id & 31))) !== 0

const wordsFor = (mask: TokenMask, vocabulary: number): number =>
  Math.min(mask.length, Math.ceil(vocabulary / 32))

/** Lists of so many tokens go on only after all were counted. */
const countedFrom = 64

const bitsIn = (word: number): number => {
  const pairs = word - ((word >>> 1) & 0x5555_5555)
  const fours = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24
}

/** Whether more than `most` tokens are allowed. */
const allowsMore = (mask: TokenMask, vocabulary: number, most: number): boolean => {
  const whole = Math.min(mask.length, vocabulary >> 5)
  let count = 0
  for (let word = 0; word < whole && count <= most; word++) count += bitsIn(mask[word]!)
  if (whole < mask.length) count += bitsIn(mask[whole]! & ((1 << (vocabulary & 31)) - 1))
  return count > most
}

/** Returns the allowed tokens in rising order; undefined when there are more than `most`. */
export const allowedTokens = (
  mask: TokenMask,
  vocabulary: number,
  most: number,
): readonly number[] | undefined => {
  const ids: number[] = []
  for (let word = 0; word < wordsFor(mask, vocabulary); word++)
    for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
      const id = word * 32 + (31 - Math.clz32(bits & -bits))
      if (id >= vocabulary) break
      if (ids.length + 1 > most) return undefined
      // to list many takes far longer than to count them
      if (ids.length === countedFrom && allowsMore(mask, vocabulary, most)) return undefined
      ids.push(id)
    }
  return ids
}

/** Sets the logits of forbidden tokens to minus infinity, in place. */
export const maskLogits = (logits: Float32Array, mask: TokenMask): void => {
  const words = wordsFor(mask, logits.length)
  for (let word = 0; word < words; word++)
    for (let bits = ~mask[word]!; bits !== 0; bits &= bits - 1) {
      const id = word * 32 + (31 - Math.clz32(bits & -bits))
      if (id < logits.length) logits[id] = Number.NEGATIVE_INFINITY
    }
  logits.fill(Number.NEGATIVE_INFINITY, Math.min(logits.length, words * 32))
}
