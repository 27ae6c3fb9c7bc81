/** The tokens of a model as grammars know them. Plain arrays, so that it may go to a thread. */
export interface GrammarVocabulary {
  /** Token `i` ends before `ends[i]`. */
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly endTokens: Uint32Array
}

const noBytes = new Uint8Array()

/** Control tokens and end tokens stand for no bytes here: no text may contain them. `bytesOf` may fail for none of the `size` ids. */
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

const byteCount = 256

/** A token for each byte, and one (256) for the end: enough to learn whether a grammar compiles. */
export const byteVocabulary = (): GrammarVocabulary =>
  grammarVocabulary(byteCount + 1, (id) => Uint8Array.of(id), [byteCount])

export const sizeOf = (vocabulary: GrammarVocabulary): number => vocabulary.ends.length

export const bytesOfToken = ({ bytes, ends }: GrammarVocabulary, id: number): Uint8Array =>
  bytes.subarray(id === 0 ? 0 : ends[id - 1], ends[id])

/** Of a mask over it. */
export const wordsOf = (vocabulary: GrammarVocabulary): number => Math.ceil(sizeOf(vocabulary) / 32)

export const isAllowed = (mask: Uint32Array, id: number): boolean =>
  ((mask[id >> 5]! >>> (id & 31)) & 1) === 1
