import { halfAt } from "./float16.ts"
import { blocksOf, levelled } from "./ggml-blocks.ts"
import type { Affine, GgmlType } from "./ggml-types.ts"

const superBlock = 256

const superBlocks = blocksOf(superBlock)

/** Q2_K and Q3_K: the byte with the two bits of value `i`, and where in it they are. */
const quarterAt = (i: number): number => 32 * (i >> 7) + (i & 31)
const quarterShift = (i: number): number => 2 * ((i >> 5) & 3)

/**
 * Two halves of 128 values, each four groups of 32 in quarters of the same 32 bytes; for 16 values
 * multiples of two halves, in the nibbles of a byte.
 */
const q2 = superBlocks("Q2_K", 84, (bytes, at, into, out) => {
  const [scale, minimum] = [halfAt(bytes, at + 80), halfAt(bytes, at + 82)]
  for (let i = 0; i < superBlock; i++) {
    const factors = bytes[at + (i >> 4)]!
    const level = (bytes[at + 16 + quarterAt(i)]! >> quarterShift(i)) & 3
    into[out + i] = scale * (factors & 15) * level - minimum * (factors >> 4)
  }
})

/**
 * As Q2_K, with the third bits in 32 bytes, one bit for each group: where it is 0 the level is less
 * by 4. The 16 scales have their four low bits in the nibbles of eight bytes, their two high bits in
 * the quarters of four.
 */
const q3 = superBlocks("Q3_K", 110, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at + 108)
  for (let group = 0; group < 16; group++) {
    const low = (bytes[at + 96 + (group & 7)]! >> (4 * (group >> 3))) & 15
    const high = (bytes[at + 104 + (group & 3)]! >> (2 * (group >> 2))) & 3
    const factor = scale * ((low | (high << 4)) - 32)
    for (let i = 16 * group; i < 16 * group + 16; i++) {
      const level = (bytes[at + 32 + quarterAt(i)]! >> quarterShift(i)) & 3
      const third = (bytes[at + (i & 31)]! >> (i >> 5)) & 1
      into[out + i] = factor * (level - (third ? 0 : 4))
    }
  }
})

/**
 * Q4_K and Q5_K: eight groups of 32, whose scales and minimums are 6-bit multiples of two halves,
 * packed into 12 bytes.
 */
const groupAffine = (bytes: Uint8Array, at: number, group: number): Affine => {
  const packed = (i: number) => bytes[at + 4 + i]!
  const low = group < 4
  const scale = low
    ? packed(group) & 63
    : (packed(group + 4) & 15) | ((packed(group - 4) >> 6) << 4)
  const minimum = low
    ? packed(group + 4) & 63
    : (packed(group + 4) >> 4) | ((packed(group) >> 6) << 4)
  return { scale: halfAt(bytes, at) * scale, minimum: -halfAt(bytes, at + 2) * minimum }
}

/** Groups come in pairs, in the low and the high nibbles of 32 bytes. */
const readPairs = (bytes: Uint8Array, at: number, group: number, into: Uint8Array): void => {
  const pairs = at + (group >> 1) * 32
  const shift = 4 * (group & 1)
  for (let j = 0; j < 32; j++) into[j] = (bytes[pairs + j]! >> shift) & 15
}

/** As `readPairs`, with the fifth bits in 32 bytes before them: one bit for each group. */
const readFiveBits = (bytes: Uint8Array, at: number, group: number, into: Uint8Array): void => {
  readPairs(bytes, at + 32, group, into)
  for (let j = 0; j < 32; j++) into[j]! |= ((bytes[at + j]! >> group) & 1) << 4
}

/** Q4_K and Q5_K. */
const withSteps = (name: string, bits: 4 | 5): GgmlType => {
  const blockBytes = 16 + 32 * bits
  const readLevels = bits === 4 ? readPairs : readFiveBits
  const read = (bytes: Uint8Array, number: number, into: Uint8Array): Affine => {
    const at = Math.floor(number / 8) * blockBytes
    readLevels(bytes, at + 16, number % 8, into)
    return groupAffine(bytes, at, number % 8)
  }
  const units = (bytes: Uint8Array, n: number): Affine => ({
    scale: halfAt(bytes, n * blockBytes),
    minimum: -halfAt(bytes, n * blockBytes + 2),
  })
  return levelled(name, blockBytes, 8, { bits, hasMinimums: true, read, units })
}

/**
 * Two halves of 128 values, each four groups of 32: four low bits of a value in nibbles, two high
 * bits in quarters of bytes, a signed scale for 16 values.
 */
const q6 = superBlocks("Q6_K", 210, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at + 208)
  for (let i = 0; i < superBlock; i++) {
    const half = i >> 7
    const group = (i >> 5) & 3
    const j = i & 31
    const nibbles = bytes[at + 64 * half + 32 * (group & 1) + j]!
    const low = group < 2 ? nibbles & 15 : nibbles >> 4
    const high = (bytes[at + 128 + 32 * half + j]! >> (2 * group)) & 3
    const signed = (bytes[at + 192 + (i >> 4)]! << 24) >> 24
    into[out + i] = scale * signed * ((low | (high << 4)) - 32)
  }
})

export const kQuants = { q2, q3, q4: withSteps("Q4_K", 4), q5: withSteps("Q5_K", 5), q6 }
