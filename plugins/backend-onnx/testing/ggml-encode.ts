import { type GgmlType, ggmlTypes } from "../weights/ggml-types.ts"

/** Writes rows in ggml's formats, for tests; plainly, not as well as llama.cpp does. */

const halfBits = (value: number): number => {
  const word = new Uint32Array(Float32Array.of(value).buffer)[0]!
  const [sign, exponent, fraction] = [
    (word >>> 16) & 0x8000,
    ((word >>> 23) & 255) - 112,
    word & 0x7fffff,
  ]
  if (exponent >= 31) return sign | 0x7c00
  if (exponent <= 0)
    return exponent < -10 ? sign : sign | ((fraction | 0x800000) >> (14 - exponent))
  return sign | ((exponent << 10) + ((fraction + 0x1000) >> 13))
}

const half = (value: number): readonly number[] => {
  const bits = halfBits(value)
  return [bits & 255, bits >> 8]
}

const clamp = (value: number, most: number): number =>
  Math.min(most, Math.max(0, Math.round(value)))

/**
 * Packs levels of 4 or 5 bits: low nibbles are the first half; fifth bits are stored in a word
 * before them.
 */
const packed = (levels: readonly number[], fifths: boolean): readonly number[] => {
  const word = levels.reduce((sum, level, j) => (sum | ((level >> 4) << j)) >>> 0, 0)
  const nibbles = Array.from(
    { length: 16 },
    (_, j) => (levels[j]! & 15) | ((levels[16 + j]! & 15) << 4),
  )
  return fifths ? [...[0, 8, 16, 24].map((shift) => (word >>> shift) & 255), ...nibbles] : nibbles
}

const centred =
  (bits: number) =>
  (values: readonly number[]): readonly number[] => {
    const zero = 2 ** (bits - 1)
    const scale = Math.max(...values.map(Math.abs)) / (zero - 1) || 1
    const levels = values.map((value) => clamp(value / scale + zero, 2 * zero - 1))
    return [...half(scale), ...packed(levels, bits === 5)]
  }

const shifted =
  (bits: number) =>
  (values: readonly number[]): readonly number[] => {
    const [low, high] = [Math.min(...values), Math.max(...values)]
    const scale = (high - low) / (2 ** bits - 1) || 1
    const levels = values.map((value) => clamp((value - low) / scale, 2 ** bits - 1))
    return [...half(scale), ...half(low), ...packed(levels, bits === 5)]
  }

const q8 = (values: readonly number[]): readonly number[] => {
  const scale = Math.max(...values.map(Math.abs)) / 127 || 1
  return [...half(scale), ...values.map((value) => Math.round(value / scale) & 255)]
}

const encoders: Readonly<Record<string, (values: readonly number[]) => readonly number[]>> = {
  F32: (values) => [...new Uint8Array(Float32Array.from(values).buffer)],
  F16: (values) => values.flatMap(half),
  BF16: (values) =>
    values.flatMap((value) => [...new Uint8Array(Float32Array.of(value).buffer)].slice(2)),
  Q8_0: q8,
  Q4_0: centred(4),
  Q4_1: shifted(4),
  Q5_0: centred(5),
  Q5_1: shifted(5),
}

export const encodedTypes = Object.keys(encoders)

export const ggmlTypeNamed = (name: string): { readonly id: number; readonly type: GgmlType } => {
  const [id, type] = [...ggmlTypes].find(([, candidate]) => candidate.name === name)!
  return { id, type }
}

export const encodeAs = (name: string, values: Float32Array): Uint8Array => {
  const { blockValues } = ggmlTypeNamed(name).type
  const out: number[] = []
  for (let at = 0; at < values.length; at += blockValues)
    out.push(...encoders[name]!([...values.subarray(at, at + blockValues)]))
  return Uint8Array.from(out)
}

export const decodeAs = (name: string, bytes: Uint8Array, count: number): Float32Array => {
  const values = new Float32Array(count)
  ggmlTypeNamed(name).type.decode(bytes, values)
  return values
}
