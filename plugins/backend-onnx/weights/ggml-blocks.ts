import type { GgmlType, Levels } from "./ggml-types.ts"

/** Decodes the block at byte `at` into the values from `out` on. */
export type DecodeBlock = (bytes: Uint8Array, at: number, into: Float32Array, out: number) => void

/** Returns a type of blocks of `blockValues` values, each in `blockBytes` bytes. */
export const blocksOf =
  (blockValues: number) =>
  (name: string, blockBytes: number, decodeBlock: DecodeBlock): GgmlType => ({
    name,
    blockValues,
    blockBytes,
    decode: (bytes, into) => {
      for (let at = 0, out = 0; out < into.length; at += blockBytes, out += blockValues)
        decodeBlock(bytes, at, into, out)
    },
  })

const scratch = new Uint8Array(32)

/** Values that share a scale, where levels have so many bits; `has_sub_blocks` in block-product.h. */
export const groupValues = (bits: number): 16 | 32 =>
  bits === 2 || bits === 3 || bits === 6 ? 16 : 32

/** Returns a type whose blocks are so many groups of levels. */
export const levelled = (
  name: string,
  blockBytes: number,
  groups: number,
  levels: Levels,
): GgmlType => {
  const { bits, codes, read } = levels
  const values = groupValues(bits)
  const decode: DecodeBlock = (bytes, at, into, out) => {
    for (let group = 0; group < groups; group++) {
      const { scale, minimum } = read(bytes, (at / blockBytes) * groups + group, scratch)
      for (let j = 0; j < values; j++) {
        const number = codes ? codes[scratch[j]!]! : scratch[j]!
        into[out + values * group + j] = scale * number + minimum
      }
    }
  }
  return { ...blocksOf(values * groups)(name, blockBytes, decode), levels }
}

/** Low nibbles of 16 bytes are the first half of 32 levels, high nibbles the second. */
export const readNibbles = (bytes: Uint8Array, at: number, into: Uint8Array): void => {
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + j]!
    into[j] = pair & 15
    into[16 + j] = pair >> 4
  }
}
