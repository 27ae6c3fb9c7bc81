import { createHash } from "node:crypto"

/**
 * The bytes of a model's tokens, for llguidance. Plain arrays, so that it can be posted to a
 * thread.
 */
export interface GrammarVocabulary {
  /** The bytes of all tokens; those of token `i` end before `ends[i]`. */
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly endTokens: Uint32Array
}

/** A vocabulary in memory that all threads share: posting it to one more copies nothing. */
export interface SharedVocabulary extends GrammarVocabulary {
  /** Names it: two models with the same tokens have the same one. */
  readonly digest: string
}

const noBytes = new Uint8Array()

/**
 * Makes the vocabulary of `size` tokens. Control tokens and end tokens have no bytes, as no text
 * may contain them. `bytesOf` must not throw for any id.
 */
export const grammarVocabulary = (
  size: number,
  bytesOf: (id: number) => Uint8Array,
  endTokens: Iterable<number>,
): GrammarVocabulary => {
  const ending = new Set(endTokens)
  const parts = Array.from({ length: size }, (_, id) => (ending.has(id) ? noBytes : bytesOf(id)))
  const ends = new Uint32Array(size)
  let end = 0
  for (const [id, part] of parts.entries()) {
    end += part.length
    ends[id] = end
  }
  return { bytes: new Uint8Array(Buffer.concat(parts)), ends, endTokens: Uint32Array.from(ending) }
}

export const sharedVocabulary = ({
  bytes,
  ends,
  endTokens,
}: GrammarVocabulary): SharedVocabulary => {
  const words = (given: Uint32Array): Uint32Array => {
    const shared = new Uint32Array(new SharedArrayBuffer(given.byteLength))
    shared.set(given)
    return shared
  }
  const sharedBytes = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  sharedBytes.set(bytes)
  const digest = createHash("sha256").update(bytes).update(ends).update(endTokens)
  return {
    bytes: sharedBytes,
    ends: words(ends),
    endTokens: words(endTokens),
    digest: digest.digest("base64url"),
  }
}

const byteCount = 256

/**
 * A token for each byte, and one (256) for the end: enough to find out whether a grammar compiles.
 */
export const byteVocabulary = (): GrammarVocabulary =>
  grammarVocabulary(byteCount + 1, (id) => Uint8Array.of(id), [byteCount])

export const sizeOf = (vocabulary: GrammarVocabulary): number => vocabulary.ends.length

export const bytesOfToken = ({ bytes, ends }: GrammarVocabulary, id: number): Uint8Array =>
  bytes.subarray(id === 0 ? 0 : ends[id - 1], ends[id])

/** Number of 32-bit words of a mask. */
export const wordsOf = (vocabulary: GrammarVocabulary): number => Math.ceil(sizeOf(vocabulary) / 32)

export const isAllowed = (mask: Uint32Array, id: number): boolean =>
  ((mask[id >> 5]! >>> (id & 31)) & 1) === 1
