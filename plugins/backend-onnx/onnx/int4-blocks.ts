import { groupValues } from "../weights/ggml-blocks.ts"
import { type Affine, type GgmlType, type Levels, levelsOf } from "../weights/ggml-types.ts"
import { Damaged } from "../weights/model-file-error.ts"
import { blockSize, notFinite } from "./int8-blocks.ts"

/**
 * One matrix row for `MatMulNBits` with 4 bits: value = scale * (level - 8) + shift, a scale and a
 * shift for each block of 32.
 */
export interface Int4Row {
  /** Two levels in a byte, the first in the low nibble. */
  readonly q: Uint8Array
  readonly scales: Float32Array
  readonly shifts: Float32Array
}

const middle = 8
const highest = 15

/**
 * Rounds the values to levels and fits scale and minimum to these by least squares. Returns the
 * squared error.
 */
const leastSquares = (
  values: Float32Array,
  start: Affine,
  levels: Uint8Array,
): Affine & { readonly error: number } => {
  let sum = 0
  let squares = 0
  let products = 0
  let total = 0
  const steps = 1 / start.scale
  for (let i = 0; i < blockSize; i++) {
    // Math.round is slow, and this runs several times for every weight
    const nearest = ((values[i]! - start.minimum) * steps + 0.5) | 0
    const level = nearest < 0 ? 0 : Math.min(nearest, highest)
    levels[i] = level
    sum += level
    squares += level * level
    products += level * values[i]!
    total += values[i]!
  }
  const spread = blockSize * squares - sum * sum
  const scale = spread > 0 ? (blockSize * products - sum * total) / spread : start.scale
  const minimum = (total - scale * sum) / blockSize
  let error = 0
  for (let i = 0; i < blockSize; i++) {
    const off = scale * levels[i]! + minimum - values[i]!
    error += off * off
  }
  return { scale, minimum, error }
}

// a range that clips the outermost values often fits the others better
const ranges = [1, 0.95, 0.9, 0.85, 0.8, 0.75]
const attempt = new Uint8Array(blockSize)

const quantizeFloats = (values: Float32Array, levels: Uint8Array): Affine => {
  let [low, high] = [values[0]!, values[0]!]
  for (const value of values) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  if (!Number.isFinite(high - low)) throw new Damaged(notFinite)
  levels.fill(0)
  if (high === low) return { scale: 0, minimum: low }
  let best: (Affine & { readonly error: number }) | undefined
  for (const range of ranges) {
    const scale = ((high - low) * range) / highest
    const found = leastSquares(
      values,
      { scale, minimum: (low + high - highest * scale) / 2 },
      attempt,
    )
    if (best && found.error >= best.error) continue
    best = found
    levels.set(attempt)
  }
  return best!
}

const levels = new Uint8Array(blockSize)

/**
 * Converts an encoded row, whose length is a multiple of 32, to levels: `own`, without loss, or where
 * there are none of 4 bits. `take` gets those of each group (`groupValues`), of which value = scale *
 * level + minimum; `own` may have codes. `decoded` is a scratch buffer `[columns]`.
 */
export const quantizeBlocks = (
  type: GgmlType,
  bytes: Uint8Array,
  decoded: Float32Array,
  own: Levels | undefined,
  take: (group: number, levels: Uint8Array, scale: number, minimum: number) => void,
): void => {
  if (!own) type.decode(bytes, decoded)
  const values = own ? groupValues(own.bits) : blockSize
  const found = levels.subarray(0, values)
  for (let group = 0; group < decoded.length / values; group++) {
    const { scale, minimum } =
      own?.read(bytes, group, found) ??
      quantizeFloats(decoded.subarray(group * values, (group + 1) * values), found)
    if (!Number.isFinite(scale) || !Number.isFinite(minimum)) throw new Damaged(notFinite)
    take(group, found, scale, minimum)
  }
}

/** Converts an encoded row, as `quantizeBlocks` does, for `MatMulNBits`. */
export const quantizeRowTo4 = (
  type: GgmlType,
  bytes: Uint8Array,
  decoded: Float32Array,
  row: Int4Row,
): void =>
  quantizeBlocks(type, bytes, decoded, levelsOf(type, 4), (block, found, scale, minimum) => {
    row.scales[block] = scale
    row.shifts[block] = minimum + middle * scale
    for (let j = 0; j < blockSize / 2; j++)
      row.q[(block * blockSize) / 2 + j] = found[2 * j]! | (found[2 * j + 1]! << 4)
  })

/** Whether rows of this type need shifts other than 0. */
export const needsShifts = (type: GgmlType, codes?: Int8Array): boolean =>
  levelsOf(type, 4, codes)?.hasMinimums ?? true
