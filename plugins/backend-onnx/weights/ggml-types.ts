import { bfloatAt, halfAt } from "./float16.ts"
import { blocksOf, type DecodeBlock } from "./ggml-blocks.ts"
import { iq4 } from "./ggml-iq4.ts"
import { kQuants } from "./ggml-k-quants.ts"

/** value = scale * level + minimum */
export interface Affine {
  readonly scale: number
  readonly minimum: number
}

/**
 * A storage format of ggml: blocks of `blockValues` values in `blockBytes` bytes (ggml-quants.h of
 * ggml-org/llama.cpp).
 */
export interface GgmlType {
  readonly name: string
  readonly blockValues: number
  readonly blockBytes: number
  /** Decodes whole blocks. */
  decode(bytes: Uint8Array, into: Float32Array): void
  /** The type is known by name and size, but can't be decoded. */
  readonly unreadable?: true
  /**
   * For types of 4 bits: the levels (0 to 15) of the group of 32 values with this number, and what
   * they mean.
   */
  readonly levels?: (bytes: Uint8Array, group: number, into: Uint8Array) => Affine
}

const scalar = (
  name: string,
  blockBytes: number,
  at: (bytes: Uint8Array, offset: number) => number,
): GgmlType => ({
  name,
  blockValues: 1,
  blockBytes,
  decode: (bytes, into) => {
    for (let i = 0; i < into.length; i++) into[i] = at(bytes, i * blockBytes)
  },
})

const blocksOf32 = blocksOf(32)

const f32: GgmlType = {
  name: "F32",
  blockValues: 1,
  blockBytes: 4,
  decode: (bytes, into) =>
    new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(
      bytes.subarray(0, into.byteLength),
    ),
}

/** Low nibbles are the first half of a block, high nibbles the second. */
const fourBits = (
  name: string,
  header: number,
  affine: (bytes: Uint8Array, at: number) => Affine,
): GgmlType => {
  const blockBytes = header + 16
  const levels = (bytes: Uint8Array, group: number, into: Uint8Array): Affine => {
    const at = group * blockBytes
    for (let j = 0; j < 16; j++) {
      const pair = bytes[at + header + j]!
      into[j] = pair & 15
      into[16 + j] = pair >> 4
    }
    return affine(bytes, at)
  }
  const scratch = new Uint8Array(32)
  const decode: DecodeBlock = (bytes, at, into, out) => {
    const { scale, minimum } = levels(bytes, at / blockBytes, scratch)
    for (let j = 0; j < 32; j++) into[out + j] = scale * scratch[j]! + minimum
  }
  return { ...blocksOf32(name, blockBytes, decode), levels }
}

/** As with four bits, with the fifth bits of all 32 values in a word of their own. */
const fiveBits = (
  name: string,
  header: number,
  affine: (bytes: Uint8Array, at: number) => Affine,
): GgmlType =>
  blocksOf32(name, header + 20, (bytes, at, into, out) => {
    const { scale, minimum } = affine(bytes, at)
    for (let j = 0; j < 32; j++) {
      const pair = bytes[at + header + 4 + (j & 15)]!
      const fifth = (bytes[at + header + (j >> 3)]! >> (j & 7)) & 1
      into[out + j] = scale * ((j < 16 ? pair & 15 : pair >> 4) | (fifth << 4)) + minimum
    }
  })

const centred =
  (zero: number) =>
  (bytes: Uint8Array, at: number): Affine => {
    const scale = halfAt(bytes, at)
    return { scale, minimum: -zero * scale }
  }
const shifted = (bytes: Uint8Array, at: number): Affine => ({
  scale: halfAt(bytes, at),
  minimum: halfAt(bytes, at + 2),
})

const q8 = blocksOf32("Q8_0", 34, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at)
  for (let j = 0; j < 32; j++) into[out + j] = (scale * (bytes[at + 2 + j]! << 24)) / 16_777_216
})

/** Types by their number in a GGUF file. */
export const ggmlTypes: ReadonlyMap<number, GgmlType> = new Map([
  [0, f32],
  [1, scalar("F16", 2, halfAt)],
  [2, fourBits("Q4_0", 2, centred(8))],
  [3, fourBits("Q4_1", 4, shifted)],
  [6, fiveBits("Q5_0", 2, centred(16))],
  [7, fiveBits("Q5_1", 4, shifted)],
  [8, q8],
  [10, kQuants.q2],
  [11, kQuants.q3],
  [12, kQuants.q4],
  [13, kQuants.q5],
  [14, kQuants.q6],
  [20, iq4.nonLinear],
  [23, iq4.extraSmall],
  [30, scalar("BF16", 2, bfloatAt)],
])

const unreadTypes: Readonly<Record<number, string>> = {
  9: "Q8_1",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  21: "IQ3_S",
  22: "IQ2_S",
  28: "F64",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  39: "MXFP4",
}

export const ggmlTypeLabel = (id: number): string =>
  ggmlTypes.get(id)?.name ?? unreadTypes[id] ?? `number ${id}`
