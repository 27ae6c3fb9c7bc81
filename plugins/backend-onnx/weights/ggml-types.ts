import { bfloatAt, halfAt } from "./float16.ts"
import { blocksOf, levelled, readNibbles } from "./ggml-blocks.ts"
import { iq4 } from "./ggml-iq4.ts"
import { kQuants } from "./ggml-k-quants.ts"

/** value = scale * level + minimum */
export interface Affine {
  readonly scale: number
  readonly minimum: number
}

/** Whole numbers of a few bits, groups of which share a scale and a minimum. */
export interface Levels {
  /** Bits of a level. */
  readonly bits: 2 | 3 | 4 | 5 | 6
  /** Where there are none, a minimum is what follows from the scale: 0 with codes, else that of a level 2^(bits - 1) for 0. */
  readonly hasMinimums: boolean
  /** What levels stand for where it is not themselves: value = scale * codes[level]. One array for all types that share it. */
  readonly codes?: Int8Array
  /** Writes the levels of the group (`groupValues`) with this number, and returns what they mean. */
  readonly read: (bytes: Uint8Array, group: number, into: Uint8Array) => Affine
  /**
   * The halves that scales and minimums of the values 256 n to 256 n + 255 are whole multiples of, each
   * in 8 signed bits. Absent: scales and minimums are halves themselves.
   */
  readonly units?: (bytes: Uint8Array, n: number) => Affine
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
  /** Absent: values are not whole numbers that share scales, or of more than 6 bits. */
  readonly levels?: Levels
}

/** The levels of a type that has them in so many bits, and with these codes, or none. */
export const levelsOf = (
  { levels }: GgmlType,
  bits: Levels["bits"],
  codes?: Int8Array,
): Levels | undefined => (levels?.bits === bits && levels.codes === codes ? levels : undefined)

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

/** As `readNibbles`, with the fifth bits of all 32 values in a word before them. */
const readFiveBits = (bytes: Uint8Array, at: number, into: Uint8Array): void => {
  readNibbles(bytes, at + 4, into)
  for (let j = 0; j < 32; j++) into[j]! |= ((bytes[at + (j >> 3)]! >> (j & 7)) & 1) << 4
}

/** A half as scale, one as minimum where there are minimums, and the levels. */
const withHalves = (name: string, bits: 4 | 5, hasMinimums: boolean): GgmlType => {
  const header = hasMinimums ? 4 : 2
  const blockBytes = header + 4 * bits
  const readLevels = bits === 4 ? readNibbles : readFiveBits
  const zero = 2 ** (bits - 1)
  const read = (bytes: Uint8Array, group: number, into: Uint8Array): Affine => {
    const at = group * blockBytes
    readLevels(bytes, at + header, into)
    const scale = halfAt(bytes, at)
    return { scale, minimum: hasMinimums ? halfAt(bytes, at + 2) : -zero * scale }
  }
  return levelled(name, blockBytes, 1, { bits, hasMinimums, read })
}

const q8 = blocksOf32("Q8_0", 34, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at)
  for (let j = 0; j < 32; j++) into[out + j] = (scale * (bytes[at + 2 + j]! << 24)) / 16_777_216
})

/** Types by their number in a GGUF file. */
export const ggmlTypes: ReadonlyMap<number, GgmlType> = new Map([
  [0, f32],
  [1, scalar("F16", 2, halfAt)],
  [2, withHalves("Q4_0", 4, false)],
  [3, withHalves("Q4_1", 4, true)],
  [6, withHalves("Q5_0", 5, false)],
  [7, withHalves("Q5_1", 5, true)],
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
