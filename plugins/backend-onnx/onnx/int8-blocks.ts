import { halfAt } from "../weights/float16.ts"
import type { GgmlType } from "../weights/ggml-types.ts"
import { Damaged } from "../weights/gguf-metadata.ts"

export const blockSize = 32

/** One matrix row for `MatMulNBits` with 8 bits: value = scale * (q - zero), a scale and a zero point for each block of 32. */
export interface Int8Row {
  readonly q: Uint8Array
  readonly scales: Float32Array
  readonly zeros: Uint8Array
}

export const int8Row = (columns: number): Int8Row => {
  const blocks = Math.ceil(columns / blockSize)
  return { q: new Uint8Array(blocks * blockSize), scales: new Float32Array(blocks), zeros: new Uint8Array(blocks) }
}

const quantizeFloats = (values: Float32Array, block: number, row: Int8Row): void => {
  const start = block * blockSize
  const end = Math.min(start + blockSize, values.length)
  let largest = 0
  for (let i = start; i < end; i++) largest = Math.max(largest, Math.abs(values[i]!))
  const scale = largest / 127
  row.scales[block] = scale
  row.zeros[block] = 128
  row.q.fill(128, start, start + blockSize)
  if (scale > 0) for (let i = start; i < end; i++) row.q[i] = Math.round(values[i]! / scale) + 128
}

/** Lossless: both formats have a signed integer and a scale for 32 values. */
const fromQ8 = (bytes: Uint8Array, block: number, row: Int8Row): void => {
  const at = block * 34
  row.scales[block] = halfAt(bytes, at)
  row.zeros[block] = 128
  for (let j = 0; j < 32; j++) row.q[block * 32 + j] = bytes[at + 2 + j]! ^ 0x80
}

/** Lossless. */
const fromQ4WithZero = (bytes: Uint8Array, block: number, row: Int8Row): void => {
  const at = block * 18
  row.scales[block] = halfAt(bytes, at)
  row.zeros[block] = 128
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + 2 + j]!
    row.q[block * 32 + j] = (pair & 15) + 120
    row.q[block * 32 + 16 + j] = (pair >> 4) + 120
  }
}

/**
 * scale*q + minimum = (scale/16) * (16q + offset - zero), with zero - offset the nearest integer to -16 minimum/scale: an error of at most scale/32.
 * False when that integer does not fit, as in a block of equal values.
 */
const fromQ4WithMinimum = (bytes: Uint8Array, block: number, row: Int8Row): boolean => {
  const at = block * 20
  const scale = halfAt(bytes, at)
  const shift = Math.round((-16 * halfAt(bytes, at + 2)) / scale)
  if (!(shift >= -15 && shift <= 255)) return false
  const zero = Math.max(0, shift)
  const offset = zero - shift
  row.scales[block] = scale / 16
  row.zeros[block] = zero
  for (let j = 0; j < 16; j++) {
    const pair = bytes[at + 4 + j]!
    row.q[block * 32 + j] = 16 * (pair & 15) + offset
    row.q[block * 32 + 16 + j] = 16 * (pair >> 4) + offset
  }
  return true
}

/** Whether rows of this type need zero points other than 128. */
export const needsZeros = (type: GgmlType): boolean => type.name === "Q4_1"

/** Brings an encoded row to 8 bits, without a detour through floats where the formats allow. `decoded` is room for the row's values. */
export const quantizeRow = (type: GgmlType, bytes: Uint8Array, decoded: Float32Array, row: Int8Row): void => {
  const direct = { Q8_0: fromQ8, Q4_0: fromQ4WithZero, Q4_1: fromQ4WithMinimum }[type.name]
  let floats = false
  const asFloats = (block: number) => {
    if (!floats) type.decode(bytes, decoded)
    floats = true
    quantizeFloats(decoded, block, row)
  }
  for (let block = 0; block < row.scales.length; block++) {
    if (!direct || direct(bytes, block, row) === false) asFloats(block)
    if (!Number.isFinite(row.scales[block]!)) throw new Damaged("a value is not a finite number")
  }
  if (floats) for (const value of decoded) if (!Number.isFinite(value)) throw new Damaged("a value is not a finite number")
}
