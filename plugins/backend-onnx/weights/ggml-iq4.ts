import { halfAt } from "./float16.ts"
import { blocksOf } from "./ggml-blocks.ts"

/** What the levels 0 to 15 of IQ4_NL and IQ4_XS stand for (`kvalues_iq4nl` of ggml-common.h). */
const codebook = Float32Array.from([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
])

/** Low nibbles of 16 bytes are the first half of 32 values, high nibbles the second. */
const decodeNibbles = (
  bytes: Uint8Array,
  at: number,
  scale: number,
  into: Float32Array,
  out: number,
): void => {
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + j]!
    into[out + j] = scale * codebook[pair & 15]!
    into[out + 16 + j] = scale * codebook[pair >> 4]!
  }
}

const nonLinear = blocksOf(32)("IQ4_NL", 18, (bytes, at, into, out) =>
  decodeNibbles(bytes, at + 2, halfAt(bytes, at), into, out),
)

/**
 * A half, then for eight groups of 32 a scale of 6 bits: the two high ones in a word of 16 bits, the
 * four low ones in nibbles.
 */
const extraSmall = blocksOf(256)("IQ4_XS", 136, (bytes, at, into, out) => {
  const high = bytes[at + 2]! | (bytes[at + 3]! << 8)
  for (let group = 0; group < 8; group++) {
    const low = bytes[at + 4 + (group >> 1)]! >> (4 * (group & 1))
    const scale = (low & 15) | (((high >> (2 * group)) & 3) << 4)
    const nibbles = at + 8 + 16 * group
    decodeNibbles(bytes, nibbles, halfAt(bytes, at) * (scale - 32), into, out + 32 * group)
  }
})

export const iq4 = { nonLinear, extraSmall }
