import { halfAt } from "./float16.ts"
import type { Affine, GgmlType } from "./ggml-types.ts"

const superBlock = 256

const superBlocks = (
  name: string,
  blockBytes: number,
  decodeBlock: (bytes: Uint8Array, at: number, into: Float32Array, out: number) => void,
): GgmlType => ({
  name,
  blockValues: superBlock,
  blockBytes,
  decode: (bytes, into) => {
    for (let at = 0, out = 0; out < into.length; at += blockBytes, out += superBlock)
      decodeBlock(bytes, at, into, out)
  },
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

const q4Bytes = 144

/** Groups come in pairs, in the low and the high nibbles of 32 bytes. */
const q4Levels = (bytes: Uint8Array, number: number, into: Uint8Array): Affine => {
  const at = Math.floor(number / 8) * q4Bytes
  const group = number % 8
  const pairs = at + 16 + (group >> 1) * 32
  for (let j = 0; j < 32; j++) into[j] = group % 2 ? bytes[pairs + j]! >> 4 : bytes[pairs + j]! & 15
  return groupAffine(bytes, at, group)
}

const scratch = new Uint8Array(32)

const q4: GgmlType = {
  ...superBlocks("Q4_K", q4Bytes, (bytes, at, into, out) => {
    for (let group = 0; group < 8; group++) {
      const { scale, minimum } = q4Levels(bytes, (at / q4Bytes) * 8 + group, scratch)
      for (let j = 0; j < 32; j++) into[out + 32 * group + j] = scale * scratch[j]! + minimum
    }
  }),
  levels: q4Levels,
}

/** As Q4_K, with the fifth bits in 32 bytes: one bit for each group. */
const q5 = superBlocks("Q5_K", 176, (bytes, at, into, out) => {
  for (let group = 0; group < 8; group++) {
    const { scale, minimum } = groupAffine(bytes, at, group)
    const pairs = at + 48 + (group >> 1) * 32
    for (let j = 0; j < 32; j++) {
      const low = group % 2 ? bytes[pairs + j]! >> 4 : bytes[pairs + j]! & 15
      const high = (bytes[at + 16 + j]! >> group) & 1
      into[out + 32 * group + j] = scale * (low | (high << 4)) + minimum
    }
  }
})

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

export const kQuants = { q4, q5, q6 }
