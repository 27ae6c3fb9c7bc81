import { Damaged } from "../weights/gguf-metadata.ts"
import { decodeRow, type Matrix } from "../weights/matrix.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { blockSize, int8Row, needsZeros, quantizeRow } from "./int8-blocks.ts"

export type Precision = "int8" | "fp32"

/** `x [.., columns]` times the matrix, transposed: `[.., rows]`. */
export const linear = (graph: GraphBuilder, x: Value, matrix: Matrix, precision: Precision): Value => (precision === "int8" ? int8Linear : floatLinear)(graph, x, matrix)

const floatLinear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const name = graph.name("w")
  const region = graph.weights(name, "float", [matrix.rows, matrix.columns])
  const values = new Float32Array(matrix.columns)
  for (let row = 0; row < matrix.rows; row++) {
    decodeRow(matrix, row, values)
    graph.store.write(region, row * values.byteLength, values)
  }
  return graph.fused("FusedMatMul", [x, name], { transB: 1 })
}

// rows that are gathered before they are written, so that a row doesn't cost three system calls
const batchRows = 64

const int8Linear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const { rows, columns } = matrix
  const blocks = Math.ceil(columns / blockSize)
  const withZeros = Array.from({ length: rows }, (_, row) => row).some((row) => needsZeros(matrix.typeOf(row)))
  const name = graph.name("w")
  const inputs = [x, `${name}_q`, `${name}_s`, ...(withZeros ? [`${name}_z`] : [])]
  const q = graph.weights(`${name}_q`, "uint8", [rows, blocks, blockSize])
  const scales = graph.weights(`${name}_s`, "float", [rows, blocks])
  const zeros = withZeros ? graph.weights(`${name}_z`, "uint8", [rows, blocks]) : undefined
  const decoded = new Float32Array(columns)
  for (let first = 0; first < rows; first += batchRows) {
    const count = Math.min(batchRows, rows - first)
    const batch = int8Row(blocks * blockSize * count)
    for (let i = 0; i < count; i++) {
      const row = {
        q: batch.q.subarray(i * blocks * blockSize, (i + 1) * blocks * blockSize),
        scales: batch.scales.subarray(i * blocks, (i + 1) * blocks),
        zeros: batch.zeros.subarray(i * blocks, (i + 1) * blocks),
      }
      convert(matrix, first + i, decoded, row)
    }
    graph.store.write(q, first * blocks * blockSize, batch.q)
    graph.store.write(scales, first * blocks * 4, batch.scales)
    if (zeros) graph.store.write(zeros, first * blocks, batch.zeros)
  }
  // accuracy level 4: activations in blocks of int8, which keeps a row's result independent of its batch-mates
  return graph.fused("MatMulNBits", inputs, { K: columns, N: rows, bits: 8, block_size: blockSize, accuracy_level: 4 })
}

const convert = (matrix: Matrix, row: number, decoded: Float32Array, into: Parameters<typeof quantizeRow>[3]): void => {
  try {
    quantizeRow(matrix.typeOf(row), matrix.row(row), decoded, into)
  } catch (cause) {
    throw cause instanceof Damaged ? new Damaged(`the tensor '${matrix.name}': ${cause.message}`) : cause
  }
}
