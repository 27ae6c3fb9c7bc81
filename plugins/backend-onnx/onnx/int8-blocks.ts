import { halfAt } from "../weights/float16.ts"
import { type GgmlType, type Levels, levelsOf } from "../weights/ggml-types.ts"
import { Damaged } from "../weights/model-file-error.ts"

export const blockSize = 32
export const notFinite = "it holds a value that is not a finite number"

/**
 * One matrix row for `MatMulNBits` with 8 bits: value = scale * (q - zero), a scale and a zero
 * point for each block of 32.
 */
export interface Int8Row {
  readonly q: Uint8Array
  readonly scales: Float32Array
  readonly zeros: Uint8Array
}

export const int8Row = (columns: number): Int8Row => {
  const blocks = Math.ceil(columns / blockSize)
  return {
    q: new Uint8Array(blocks * blockSize),
    scales: new Float32Array(blocks),
    zeros: new Uint8Array(blocks),
  }
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
  if (!(scale > 0)) return
  // rounds as Math.round does, whose branch is mispredicted half of the time
  for (let i = start; i < end; i++) row.q[i] = Math.floor(values[i]! / scale + 0.5) + 128
}

/** Lossless: both formats have a signed integer and a scale for 32 values. */
const fromQ8 = (bytes: Uint8Array, block: number, row: Int8Row): void => {
  const at = block * 34
  row.scales[block] = halfAt(bytes, at)
  row.zeros[block] = 128
  for (let j = 0; j < 32; j++) row.q[block * 32 + j] = bytes[at + 2 + j]! ^ 0x80
}

/** Lossless: a row of levels with one scale (int-quantized), which is that of each block. */
const fromI8 = (bytes: Uint8Array, block: number, row: Int8Row): void => {
  const [header, start] = [4, block * blockSize]
  const scale = new DataView(bytes.buffer, bytes.byteOffset).getFloat32(0, true)
  row.scales[block] = scale
  row.zeros[block] = 128
  row.q.fill(128, start, start + blockSize)
  const end = Math.min(start + blockSize, bytes.length - header)
  for (let i = start; i < end; i++) row.q[i] = bytes[header + i]! ^ 0x80
}

const levels = new Uint8Array(blockSize)

/**
 * scale*level + minimum = (scale/16) * (16*level + offset - zero), with zero - offset the nearest
 * integer to -16 minimum/scale: an error of at most scale/32,
 * none for Q4_0. False when that integer does not fit, as in a block of equal values.
 */
const fromLevels = ({ read }: Levels, bytes: Uint8Array, block: number, row: Int8Row): boolean => {
  const { scale, minimum } = read(bytes, block, levels)
  const shift = Math.round((-16 * minimum) / scale)
  if (!(shift >= -15 && shift <= 255)) return false
  // 128 where possible, so that a matrix of such blocks needs no zero points
  const zero = shift === 128 ? 128 : Math.max(0, shift)
  row.scales[block] = scale / 16
  row.zeros[block] = zero
  for (let j = 0; j < blockSize; j++) row.q[block * blockSize + j] = 16 * levels[j]! + zero - shift
  return true
}

/** Whether rows of this type need zero points other than 128. */
export const needsZeros = (type: GgmlType): boolean => levelsOf(type, 4)?.hasMinimums === true

const direct = (type: GgmlType, bytes: Uint8Array, block: number, row: Int8Row): boolean => {
  if (type.name === "Q8_0") fromQ8(bytes, block, row)
  if (type.name === "I8") fromI8(bytes, block, row)
  if (type.name === "Q8_0" || type.name === "I8") return true
  const fourBits = levelsOf(type, 4)
  return fourBits !== undefined && fromLevels(fourBits, bytes, block, row)
}

/**
 * Converts an encoded row to 8 bits, without decoding to floats where the formats allow. `decoded`
 * is a scratch buffer `[columns]`.
 */
export const quantizeRow = (
  type: GgmlType,
  bytes: Uint8Array,
  decoded: Float32Array,
  row: Int8Row,
): void => {
  let floats = false
  const asFloats = (block: number) => {
    if (!floats) type.decode(bytes, decoded)
    floats = true
    quantizeFloats(decoded, block, row)
  }
  for (let block = 0; block < row.scales.length; block++) {
    if (!direct(type, bytes, block, row)) asFloats(block)
    if (!Number.isFinite(row.scales[block]!)) throw new Damaged(notFinite)
  }
  // by index, as an iterator takes longer than the rest
  if (floats)
    for (let i = 0; i < decoded.length; i++)
      if (!Number.isFinite(decoded[i]!)) throw new Damaged(notFinite)
}
