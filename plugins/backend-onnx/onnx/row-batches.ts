import type { GgmlType } from "../weights/ggml-types.ts"
import type { Matrix } from "../weights/matrix.ts"
import { Damaged } from "../weights/model-file-error.ts"

/** Rows that are written together, so that a row doesn't cost several system calls. */
export const batchRows = 64

/**
 * Converts a matrix a few rows at a time, so that it is never in memory as a whole; errors name the
 * tensor.
 */
export const inBatches = (
  matrix: Matrix,
  convert: (first: number, count: number) => void,
): void => {
  try {
    for (let first = 0; first < matrix.rows; first += batchRows)
      convert(first, Math.min(batchRows, matrix.rows - first))
  } catch (cause) {
    throw cause instanceof Damaged && !cause.message.includes(matrix.name)
      ? new Damaged(`the tensor '${matrix.name}': ${cause.message}`, cause.remedy)
      : cause
  }
}

/** The types of its rows. */
export const typesIn = (matrix: Matrix): readonly GgmlType[] => {
  const types = new Set<GgmlType>()
  for (let row = 0; row < matrix.rows; row++) types.add(matrix.typeOf(row))
  return [...types]
}

export const someRow = (matrix: Matrix, needs: (type: GgmlType) => boolean): boolean =>
  typesIn(matrix).some((type) => needs(type))
