import { bfloatAt, halfAt } from "./float16.ts"

/** How ggml stores numbers: blocks of `blockValues` values in `blockBytes` bytes (ggml-quants.h of ggml-org/llama.cpp). */
export interface GgmlType {
  readonly name: string
  readonly blockValues: number
  readonly blockBytes: number
  /** Values of whole blocks. */
  decode(bytes: Uint8Array, into: Float32Array): void
}

const scalar = (name: string, blockBytes: number, at: (bytes: Uint8Array, offset: number) => number): GgmlType => ({
  name,
  blockValues: 1,
  blockBytes,
  decode: (bytes, into) => {
    for (let i = 0; i < into.length; i++) into[i] = at(bytes, i * blockBytes)
  },
})

const blocks = (name: string, blockBytes: number, block: (bytes: Uint8Array, at: number, into: Float32Array, out: number) => void): GgmlType => ({
  name,
  blockValues: 32,
  blockBytes,
  decode: (bytes, into) => {
    for (let at = 0, out = 0; out < into.length; at += blockBytes, out += 32) block(bytes, at, into, out)
  },
})

const floatAt = (bytes: Uint8Array, offset: number): number => new DataView(bytes.buffer, bytes.byteOffset + offset, 4).getFloat32(0, true)

const f32: GgmlType = {
  ...scalar("F32", 4, floatAt),
  decode: (bytes, into) => new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(bytes.subarray(0, into.byteLength)),
}

const q4WithZero: GgmlType = blocks("Q4_0", 18, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at)
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + 2 + j]!
    into[out + j] = scale * ((pair & 15) - 8)
    into[out + 16 + j] = scale * ((pair >> 4) - 8)
  }
})

const q4WithMinimum: GgmlType = blocks("Q4_1", 20, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at)
  const minimum = halfAt(bytes, at + 2)
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + 4 + j]!
    into[out + j] = scale * (pair & 15) + minimum
    into[out + 16 + j] = scale * (pair >> 4) + minimum
  }
})

const q8: GgmlType = blocks("Q8_0", 34, (bytes, at, into, out) => {
  const scale = halfAt(bytes, at)
  for (let j = 0; j < 32; j++) into[out + j] = (scale * (bytes[at + 2 + j]! << 24)) / 16_777_216
})

/** By the type number in a GGUF file. */
export const ggmlTypes: ReadonlyMap<number, GgmlType> = new Map([
  [0, f32],
  [1, scalar("F16", 2, halfAt)],
  [2, q4WithZero],
  [3, q4WithMinimum],
  [8, q8],
  [30, scalar("BF16", 2, bfloatAt)],
])

const laterTypes: Readonly<Record<number, string>> = { 6: "Q5_0", 7: "Q5_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 20: "IQ4_NL", 23: "IQ4_XS" }

export const ggmlTypeLabel = (id: number): string => ggmlTypes.get(id)?.name ?? laterTypes[id] ?? `number ${id}`
