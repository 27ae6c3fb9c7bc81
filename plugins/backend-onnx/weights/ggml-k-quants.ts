import { halfAt } from "./float16.ts"
import { levelled } from "./ggml-blocks.ts"
import type { Affine, GgmlType } from "./ggml-types.ts"

interface SixteenGroups {
  readonly bits: 2 | 3 | 6
  readonly hasMinimums: boolean
  /** As `read` of `Levels`, for the group with this number in the block at byte `at`. */
  readonly read: (bytes: Uint8Array, at: number, group: number, into: Uint8Array) => Affine
  readonly units: (bytes: Uint8Array, at: number) => Affine
}

/** Returns a type whose blocks are 16 groups of 16 values: Q2_K, Q3_K and Q6_K. */
const withSixteen = (name: string, blockBytes: number, { read, units, ...of }: SixteenGroups) =>
  levelled(name, blockBytes, 16, {
    ...of,
    read: (bytes, number, into) =>
      read(bytes, Math.floor(number / 16) * blockBytes, number % 16, into),
    units: (bytes, n) => units(bytes, n * blockBytes),
  })

/** Q2_K and Q3_K: two bits of a group's values, each in a quarter of a byte that four groups share. */
const readQuarters = (bytes: Uint8Array, at: number, group: number, into: Uint8Array): void => {
  const quarters = at + 32 * (group >> 3) + 16 * (group & 1)
  const shift = 2 * ((group >> 1) & 3)
  for (let j = 0; j < 16; j++) into[j] = (bytes[quarters + j]! >> shift) & 3
}

/** 16 bytes whose nibbles are the multiples of two halves, then the levels, then these halves. */
const q2 = withSixteen("Q2_K", 84, {
  bits: 2,
  hasMinimums: true,
  read: (bytes, at, group, into) => {
    readQuarters(bytes, at + 16, group, into)
    const factors = bytes[at + group]!
    return {
      scale: halfAt(bytes, at + 80) * (factors & 15),
      minimum: -halfAt(bytes, at + 82) * (factors >> 4),
    }
  },
  units: (bytes, at) => ({
    scale: halfAt(bytes, at + 80),
    minimum: -halfAt(bytes, at + 82),
  }),
})

/**
 * As Q2_K, with the third bits in 32 bytes before, one bit for each 32 values, and 4 for 0. The 16
 * scales have their four low bits in the nibbles of eight bytes, their two high bits in the quarters of
 * four.
 */
const q3 = withSixteen("Q3_K", 110, {
  bits: 3,
  hasMinimums: false,
  read: (bytes, at, group, into) => {
    readQuarters(bytes, at + 32, group, into)
    const thirds = at + 16 * (group & 1)
    for (let j = 0; j < 16; j++) into[j]! |= ((bytes[thirds + j]! >> (group >> 1)) & 1) << 2
    const low = (bytes[at + 96 + (group & 7)]! >> (4 * (group >> 3))) & 15
    const high = (bytes[at + 104 + (group & 3)]! >> (2 * (group >> 2))) & 3
    const scale = halfAt(bytes, at + 108) * ((low | (high << 4)) - 32)
    return { scale, minimum: -4 * scale }
  },
  // negative, so that a level less 4 (-4 to 3) times its scale's steps (-31 to 32) fits into 8 bits
  units: (bytes, at) => ({ scale: -halfAt(bytes, at + 108), minimum: 0 }),
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
 * Two halves of 128 values, each four times 32: four low bits of a value in nibbles, two high bits in
 * quarters of bytes, a signed scale for 16 values; 32 for 0.
 */
const q6 = withSixteen("Q6_K", 210, {
  bits: 6,
  hasMinimums: false,
  read: (bytes, at, group, into) => {
    const quarter = (group >> 1) & 3
    const own = at + 16 * (group & 1)
    const nibbles = own + 64 * (group >> 3) + 32 * (quarter & 1)
    const highs = own + 128 + 32 * (group >> 3)
    for (let j = 0; j < 16; j++) {
      const low = (bytes[nibbles + j]! >> (4 * (quarter >> 1))) & 15
      into[j] = low | (((bytes[highs + j]! >> (2 * quarter)) & 3) << 4)
    }
    const signed = (bytes[at + 192 + group]! << 24) >> 24
    const scale = halfAt(bytes, at + 208) * signed
    return { scale, minimum: -32 * scale }
  },
  units: (bytes, at) => ({ scale: halfAt(bytes, at + 208), minimum: 0 }),
})

export const kQuants = { q2, q3, q4: withSteps("Q4_K", 4), q5: withSteps("Q5_K", 5), q6 }
