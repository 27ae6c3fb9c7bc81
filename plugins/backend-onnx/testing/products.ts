import { groupValues } from "../weights/ggml-blocks.ts"
import type { Matrix } from "../weights/matrix.ts"
import { encodeAs, ggmlTypeNamed } from "./ggml-encode.ts"

/** Where blocks of types that nothing here encodes have halves. */
const halvesIn: Readonly<Record<string, readonly (readonly [at: number, bits: number])[]>> = {
  Q2_K: [
    [80, 0x1c12],
    [82, 0x2034],
  ],
  Q3_K: [[108, 0x1812]],
  Q6_K: [[208, 0x0612]],
  Q4_K: [
    [0, 0x1c12],
    [2, 0x2034],
  ],
  Q5_K: [
    [0, 0x1812],
    [2, 0x2034],
  ],
  IQ4_NL: [[0, 0x0a12]],
  IQ4_XS: [[0, 0x0112]],
}

/** Blocks of a row: halves as scale and minimum, and any bits as levels and their own scales. */
const anyBlocks = (name: string, row: number, columns: number): Buffer => {
  const { blockBytes, blockValues } = ggmlTypeNamed(name).type
  const blocks = Array.from({ length: columns / blockValues }, (_, block) => {
    const bytes = Buffer.from(
      Array.from({ length: blockBytes }, (_, i) => ((row + 3 * block) * 37 + i * i * 11) & 255),
    )
    for (const [at, bits] of halvesIn[name]!) bytes.writeUInt16LE(bits + block, at)
    return bytes
  })
  return Buffer.concat(blocks)
}

export const matrixOfType = (type: string, rows: number, columns: number): Matrix => {
  const encoded = Array.from({ length: rows }, (_, row) => {
    if (halvesIn[type]) return anyBlocks(type, row, columns)
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

/** Values of a row of inputs that share a scale, by the bits of the matrix's levels. */
export const inputBlock = (bits: number): number => (groupValues(bits) === 16 ? 128 : 32)

/** By how much products are off, over what rounding the inputs to 8 bits in such blocks may make. */
export const worstOf = (
  x: Float32Array,
  weights: readonly (readonly number[])[],
  product: ArrayLike<number>,
  block: number,
): number => {
  const off = Float64Array.from(x, (_, i) => {
    const from = i - (i % block)
    return Math.max(...x.subarray(from, from + block).map(Math.abs)) / 254
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
