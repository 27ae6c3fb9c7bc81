import { toHalves } from "./float16.ts"
import type { GgmlType } from "./ggml-types.ts"
import { Damaged, Unsupported } from "./model-file-error.ts"
import type { TensorEntry, TensorSource } from "./tensor-file.ts"

/** A weight matrix `[rows, columns]` (outputs, inputs) that is read row by row. */
export interface Matrix {
  readonly name: string
  readonly rows: number
  readonly columns: number
  typeOf(row: number): GgmlType
  /** Returns the encoded bytes of a row, valid until the next call. */
  row(row: number): Buffer
}

const windowRows = 256

interface Shape {
  readonly rows: number
  readonly columns: number
}

/** Returns the matrices of a tensor as one, each below the one before; `count`: how many they have to be. */
export const matricesOf = (
  file: TensorSource,
  name: string,
  { rows, columns }: Shape,
  count: number,
): Matrix => {
  const entry = file.tensor(name)
  const { matrixRows } = entry
  if (matrixRows === undefined) return read(file, entry, { rows: rows * count, columns })
  if (matrixRows !== rows)
    throw new Damaged(
      `the tensor '${name}' has matrices of ${matrixRows} rows, its configuration asks for ${rows}`,
    )
  const below = { rows: entry.rows * matrixRows, columns: entry.columns / matrixRows }
  return read(file, { ...entry, ...below }, { rows: rows * count, columns })
}

export const matrixOf = (file: TensorSource, name: string, shape: Shape): Matrix =>
  read(file, file.tensor(name), shape)

/** Reads several rows at a time, so that reordered rows don't cost a system call each. */
const read = (file: TensorSource, entry: TensorEntry, shape: Shape): Matrix => {
  const { name } = entry
  if (entry.rows !== shape.rows || entry.columns !== shape.columns)
    throw new Damaged(
      `the tensor '${name}' is ${entry.rows} x ${entry.columns}, its configuration asks for ${shape.rows} x ${shape.columns}`,
    )
  if (entry.type.unreadable)
    throw new Unsupported(
      `the tensor '${name}' has the type ${entry.type.name}, which this backend can't read`,
    )
  const rowBytes = entry.bytes / entry.rows
  let first = -1
  let window: Buffer = Buffer.alloc(0)
  return {
    name,
    ...shape,
    typeOf: () => entry.type,
    row: (row) => {
      if (first < 0 || row < first || row >= first + windowRows) {
        first = row - (row % windowRows)
        window = file.rows(entry, first, Math.min(windowRows, entry.rows - first))
      }
      return window.subarray((row - first) * rowBytes, (row - first + 1) * rowBytes)
    },
  }
}

/** Returns some of a matrix' rows. */
export const rowsOf = (matrix: Matrix, first: number, rows: number): Matrix =>
  rows === matrix.rows
    ? matrix
    : {
        ...matrix,
        rows,
        typeOf: (row) => matrix.typeOf(first + row),
        row: (row) => matrix.row(first + row),
      }

/** Concatenates matrices row-wise. */
export const stacked = (parts: readonly Matrix[]): Matrix => {
  const owners = parts.flatMap((part) =>
    Array.from({ length: part.rows }, (_, row) => [part, row] as const),
  )
  return {
    name: parts.map((part) => part.name).join(" + "),
    rows: owners.length,
    columns: parts[0]!.columns,
    typeOf: (row) => owners[row]![0].typeOf(owners[row]![1]),
    row: (row) => owners[row]![0].row(owners[row]![1]),
  }
}

/**
 * llama.cpp stores the rows of q and k so that rotary pairs are neighbours (2i, 2i+1); the usual
 * layout has them half a head apart (i, i+H/2).
 * This is the inverse of `permute` in its convert_hf_to_gguf.py: the index of each row of the usual
 * layout.
 */
export const halvesOrder = (rows: number, heads: number): readonly number[] => {
  const size = rows / heads
  return Array.from({ length: rows }, (_, row) => {
    const within = row % size
    return row - within + 2 * (within % (size / 2)) + (within < size / 2 ? 0 : 1)
  })
}

export const halvesLayout = (matrix: Matrix, heads: number): Matrix => {
  const order = halvesOrder(matrix.rows, heads)
  return {
    ...matrix,
    typeOf: (row) => matrix.typeOf(order[row]!),
    row: (row) => matrix.row(order[row]!),
  }
}

/** Decodes a row to floats. Throws for NaN and infinity, which would spoil every answer. */
export const decodeRow = (matrix: Matrix, row: number, into: Float32Array): void => {
  matrix.typeOf(row).decode(matrix.row(row), into)
  for (const value of into)
    if (!Number.isFinite(value))
      throw new Damaged(`the tensor '${matrix.name}': it holds a value that is not a finite number`)
}

/** Decodes a row to halves; throws as `decodeRow` does, and for values that none is near. */
export const decodeHalves = (matrix: Matrix, row: number, into: Uint16Array): void => {
  const values = new Float32Array(into.length)
  decodeRow(matrix, row, values)
  const large = toHalves(values, into)
  if (large !== undefined)
    throw new Unsupported(
      `the tensor '${matrix.name}' has the value ${large}, and fp16 ends at 65504`,
      "Ask for precision fp32",
    )
}

/** Reads a tensor of one row, such as a norm's weights. */
export const vectorOf = (file: TensorSource, name: string, length: number): Float32Array => {
  const values = new Float32Array(length)
  decodeRow(matrixOf(file, name, { rows: 1, columns: length }), 0, values)
  return values
}
