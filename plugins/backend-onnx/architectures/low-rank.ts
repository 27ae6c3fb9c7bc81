import { decodeRow, type Matrix, matrixOf } from "../weights/matrix.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"

/** A change of low rank to one matrix: the product is `x a^T b^T`. */
export interface LowRank {
  readonly rank: number
  /** `[rank, columns]` */
  readonly a: Float32Array
  /** `[rows, rank]`, scaled by alpha. */
  readonly b: Float32Array
}

/** Low rank, as the name says: more costs as much as the matrices themselves. */
const maxRank = 256
// weights of adapters are small; larger ones could overflow in the rows of other requests
const largestValue = 1e6

const valuesOf = (matrix: Matrix, factor: number): Float32Array => {
  const values = new Float32Array(matrix.rows * matrix.columns)
  for (let row = 0; row < matrix.rows; row++) {
    const into = values.subarray(row * matrix.columns, (row + 1) * matrix.columns)
    decodeRow(matrix, row, into)
    for (let i = 0; i < into.length; i++) {
      into[i] = into[i]! * factor
      if (!(Math.abs(into[i]!) <= largestValue))
        throw new Damaged(`the tensor '${matrix.name}': it holds the impossible value ${into[i]}`)
    }
  }
  return values
}

/** The two tensors of a pair; no value is read yet. */
export interface LowRankTensors {
  readonly rank: number
  readonly a: Matrix
  readonly b: Matrix
  /** What `b` is multiplied with. */
  readonly factor: number
}

/** Refuses a tensor of another shape, which mostly is one of an adapter of another model. */
const found = (
  source: TensorSource,
  name: string,
  shape: { readonly rows: number; readonly columns: number },
): Matrix => {
  const { rows, columns } = source.tensor(name)
  if (rows !== shape.rows || columns !== shape.columns)
    throw new Unsupported(
      `the tensor '${name}' is ${rows} x ${columns}, and the model asks for ${shape.rows} x ${shape.columns}`,
      "Name an adapter that was trained on this model",
    )
  return matrixOf(source, name, shape)
}

/**
 * Finds the two tensors of a LoRA (Hu et al., arXiv 2106.09685) for a matrix of this size, by the
 * file's header alone; `scale` is the factor of a pair of a rank. Throws `Damaged` and
 * `Unsupported`.
 */
export const findLowRank = (
  source: TensorSource,
  names: { readonly a: string; readonly b: string },
  { rows, columns }: { readonly rows: number; readonly columns: number },
  scale: (rank: number) => number,
): LowRankTensors => {
  const rank = source.tensor(names.a).rows
  if (rank > maxRank)
    throw new Unsupported(
      `the tensor '${names.a}' has the rank ${rank}, the most is ${maxRank}`,
      "Name an adapter of a lower rank",
    )
  // first: of a transposed matrix the rank is what is wrong
  const factor = scale(rank)
  return {
    rank,
    a: found(source, names.a, { rows: rank, columns }),
    b: found(source, names.b, { rows, columns: rank }),
    factor,
  }
}

/** Reads the values of a pair. Throws `Damaged`. */
export const readLowRank = ({ rank, a, b, factor }: LowRankTensors): LowRank => ({
  rank,
  a: valuesOf(a, 1),
  b: valuesOf(b, factor),
})
