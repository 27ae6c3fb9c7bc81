import type { Matrix } from "../weights/matrix.ts"
import { encodeAs, ggmlTypeNamed } from "./ggml-encode.ts"

/** 256 values: halves as scale and minimum, and any bits as levels and their own scales. */
const q4kRow = (row: number): Buffer =>
  Buffer.from([
    0x12,
    0x1c,
    0x34,
    0x20,
    ...Array.from({ length: 140 }, (_, i) => (row * 37 + i * i * 11) & 255),
  ])

export const matrixOfType = (type: string, rows: number, columns: number): Matrix => {
  const encoded = Array.from({ length: rows }, (_, row) => {
    if (type === "Q4_K")
      return Buffer.from(Buffer.concat(new Array(columns / 256).fill(q4kRow(row))))
    const size = 0.01 * (1 + (row % 7))
    const values = Float32Array.from(
      { length: columns },
      (_, i) => size * Math.sin(row * 31 + i * i),
    )
    return Buffer.from(encodeAs(type, values))
  })
  return {
    name: type,
    rows,
    columns,
    typeOf: () => ggmlTypeNamed(type).type,
    row: (row) => encoded[row]!,
  }
}

export const valuesOf = (matrix: Matrix, row: number): readonly number[] => {
  const values = new Float32Array(matrix.columns)
  matrix.typeOf(row).decode(matrix.row(row), values)
  return [...values]
}

/** Rows of inputs: of several sizes, each with a number far beyond the others; one is zeros. */
export const inputRows = (count: number, columns: number): readonly Float32Array[] =>
  Array.from({ length: count }, (_, n) =>
    Float32Array.from({ length: columns }, (_, i) =>
      n === 5 ? 0 : 10 ** ((n % 7) - 3) * Math.cos(n * 977 + i * i) * (i === n ? 50 : 1),
    ),
  )

/** By how much products are off, over what rounding the inputs to 8 bits in blocks of 32 may make. */
export const worstOf = (
  x: Float32Array,
  weights: readonly (readonly number[])[],
  product: ArrayLike<number>,
): number => {
  const off = Float64Array.from(x, (_, i) => {
    const from = i - (i % 32)
    return Math.max(...x.subarray(from, from + 32).map(Math.abs)) / 254
  })
  const excess = weights.map((row, output) => {
    let [exact, most] = [0, 1e-12]
    for (const [i, number] of x.entries()) {
      exact += number * row[i]!
      most += Math.abs(row[i]!) * (1.01 * off[i]! + 1e-5 * Math.abs(number))
    }
    return Math.abs(product[output]! - exact) / most
  })
  return excess.reduce((worst, one) => (one > worst || Number.isNaN(one) ? one : worst), 0)
}
