import type { Vocabulary } from "./vocabulary.ts"

/** The bytes of every token, in one buffer. */
export const tokenBytes = (vocabulary: Vocabulary): ((id: number) => Uint8Array) => {
  const parts = vocabulary.tokens.map((_, id) => vocabulary.bytesOf(id))
  const ends = new Uint32Array(parts.length)
  let end = 0
  for (const [id, part] of parts.entries()) {
    end += part.length
    ends[id] = end
  }
  const all = Buffer.concat(parts)
  return (id) => all.subarray(id === 0 ? 0 : ends[id - 1], ends[id])
}
