import type { GgmlType } from "../weights/ggml-types.ts"
import { decodeHalves, decodeRow, type Matrix } from "../weights/matrix.ts"
import { Unsupported } from "../weights/model-file-error.ts"
import { plusAdapters } from "./adapter-inputs.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { needsShifts, quantizeRowTo4 } from "./int4-blocks.ts"
import { blockSize, needsZeros, quantizeRow } from "./int8-blocks.ts"
import { channelProduct, writeChannels } from "./int8-channels.ts"
import { type Additions, panelProduct } from "./panel-blocks.ts"
import { type LevelBits, panelBytesPerWeight, panelFormat } from "./panel-format.ts"
import { type ProductInput, rowsAsValue } from "./product-input.ts"
import { batchRows, inBatches, someRow, typesIn } from "./row-batches.ts"
import type { StoredWeights } from "./weight-store.ts"

/** How weights are kept; `auto`: each matrix as its file has it. */
export type Precision = "auto" | "int8" | "int8-channel" | "int4" | "fp16" | "fp32"

/**
 * The fewest bits that hold rows of this type without loss, or 8. `kernels`: whether the graph has
 * native kernels, which also have 2, 3, 5 and 6 bits, and codes in 4.
 */
export const ownBits = ({ levels }: GgmlType, kernels: boolean): LevelBits => {
  if (kernels) return levels?.bits ?? 8
  return levels?.bits === 4 && !levels.codes ? 4 : 8
}

/** What `auto` keeps rows of this type as: so many bits, or 4 that stand for the codes of this array. */
export type OwnFormat = LevelBits | Int8Array

export const ownFormat = (type: GgmlType, kernels: boolean): OwnFormat => {
  const bits = ownBits(type, kernels)
  return bits === 4 && type.levels?.codes ? type.levels.codes : bits
}

/** The bits that `auto` keeps a matrix in. */
const bitsFor = (matrix: Matrix, kernels: boolean): LevelBits => {
  const formats = new Set(typesIn(matrix).map((type) => ownFormat(type, kernels)))
  const [format = 8] = formats
  if (formats.size > 1) return 8
  return format instanceof Int8Array ? 4 : format
}

const isInBlocks = (precision: Precision): precision is "auto" | "int8" | "int4" =>
  precision === "auto" || precision === "int8" || precision === "int4"

/** Whether products of this precision are those of the native kernels, whatever the matrix. */
export const isNativeLinear = ({ kernels }: GraphBuilder, precision: Precision): boolean =>
  kernels && isInBlocks(precision)

/**
 * Bytes in memory of a weight that the file has in this type: its level, its share of the block's.
 * `kernels`: whether the graph has native kernels.
 */
export const bytesPerWeight = (type: GgmlType, kernels = false): number => {
  const bits = ownBits(type, kernels)
  if (kernels) return panelBytesPerWeight(panelFormat([type], bits))
  const numbers = bits === 4 && needsShifts(type) ? 2 : 1
  return bits / 8 + (numbers * 4) / blockSize
}

/**
 * `x [.., columns]` times the matrix, transposed, plus the bias: `[.., rows]`. For int4, and with
 * adapters, `x` is `[B, S, columns]`, unless the graph has native kernels.
 */
export const linear = (
  graph: GraphBuilder,
  x: Value | ProductInput,
  matrix: Matrix,
  precision: Precision,
  { bias, adapters }: Additions = {},
): Value => {
  if (graph.kernels && isInBlocks(precision))
    return panelLinear(graph, x, matrix, precision, { bias, adapters })
  const rows = rowsAsValue(x)
  const bare = plainLinears(graph)[withoutKernels(precision, matrix)](graph, rows, matrix)
  const product = bias ? graph.node("Add", [bare, graph.floats([...bias])]) : bare
  return adapters ? plusAdapters(graph, rows, product, matrix.columns, adapters) : product
}

const withoutKernels = (precision: Precision, matrix: Matrix): Exclude<Precision, "auto"> => {
  if (precision !== "auto") return precision
  return bitsFor(matrix, false) === 4 ? "int4" : "int8"
}

const plainLinears = ({ target }: GraphBuilder) => ({
  int8: int8Linear,
  "int8-channel": target === "cpu" ? channelLinear : int8Linear,
  int4: int4Linear,
  fp16: halfLinear,
  fp32: floatLinear,
})

const panelLinear = (
  graph: GraphBuilder,
  x: Value | ProductInput,
  matrix: Matrix,
  precision: "auto" | "int8" | "int4",
  additions: Additions,
): Value => {
  if (precision === "int4") refusePartialBlocks(matrix)
  if (precision === "auto") return panelProduct(graph, x, matrix, bitsFor(matrix, true), additions)
  return panelProduct(graph, x, matrix, precision === "int4" ? 4 : 8, additions)
}

const refusePartialBlocks = ({ name, columns }: Matrix): void => {
  if (columns % blockSize)
    throw new Unsupported(
      `the tensor '${name}' has rows of ${columns} values, and int4 needs a multiple of ${blockSize}`,
      "Ask for precision int8",
    )
}

// a part of a matrix that is transposed in memory
const partBytes = 2 ** 28

/**
 * Writes a matrix as its graph takes it: a row after another for FusedMatMul, a column after another
 * for MatMul, as the GPU has it. `Part` holds its numbers, which `decode` reads, a row each.
 */
const writeMatrix = <Part extends Float32Array | Uint16Array>(
  { store, target }: GraphBuilder,
  matrix: Matrix,
  region: StoredWeights,
  newPart: (length: number) => Part,
  decode: (row: number, into: Part) => void,
): void => {
  const { rows, columns } = matrix
  if (target === "cpu") {
    const batch = newPart(batchRows * columns)
    inBatches(matrix, (first, count) => {
      for (let i = 0; i < count; i++)
        decode(first + i, batch.subarray(i * columns, (i + 1) * columns) as Part)
      const bytes = batch.BYTES_PER_ELEMENT
      store.write(region, first * columns * bytes, batch.subarray(0, count * columns))
    })
    return
  }
  const row = newPart(columns)
  const width = Math.min(columns, Math.max(1, Math.floor(partBytes / (rows * 4))))
  for (let from = 0; from < columns; from += width) {
    const count = Math.min(width, columns - from)
    const part = newPart(count * rows)
    inBatches(matrix, (first, batch) => {
      for (let index = first; index < first + batch; index++) {
        decode(index, row)
        for (let i = 0; i < count; i++) part[i * rows + index] = row[from + i]!
      }
    })
    store.write(region, from * rows * part.BYTES_PER_ELEMENT, part)
  }
}

const shapeFor = ({ target }: GraphBuilder, { rows, columns }: Matrix) =>
  target === "cpu" ? [rows, columns] : [columns, rows]

/** `x` times a matrix that `writeMatrix` has written. */
const timesMatrix = (graph: GraphBuilder, x: Value, matrix: Value): Value =>
  graph.matmul(x, matrix, graph.target === "cpu" ? { transposed: 2 } : {})

const floatLinear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const name = graph.name("w")
  const region = graph.weights(name, "float", shapeFor(graph, matrix))
  writeMatrix(
    graph,
    matrix,
    region,
    (length) => new Float32Array(length),
    (row, into) => decodeRow(matrix, row, into),
  )
  return timesMatrix(graph, x, name)
}

const halfLinear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const { region, value } = graph.halves(shapeFor(graph, matrix))
  writeMatrix(
    graph,
    matrix,
    region,
    (length) => new Uint16Array(length),
    (row, into) => decodeHalves(matrix, row, into),
  )
  return timesMatrix(graph, x, value)
}

// accuracy level 4: activations are quantized to int8 in blocks, so a row's result does not depend
// on the other rows of its batch
const inBlocks = (
  graph: GraphBuilder,
  inputs: readonly Value[],
  { rows, columns }: Matrix,
  bits: number,
): Value =>
  graph.fused("MatMulNBits", inputs, {
    K: columns,
    N: rows,
    bits,
    block_size: blockSize,
    accuracy_level: 4,
  })

const int8Linear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const { rows, columns } = matrix
  const blocks = Math.ceil(columns / blockSize)
  const rowBytes = blocks * blockSize
  const name = graph.name("w")
  const q = graph.weights(`${name}_q`, "uint8", [rows, blocks, blockSize])
  const scales = graph.weights(`${name}_s`, "float", [rows, blocks])
  const zeros = someRow(matrix, needsZeros)
    ? graph.weights(`${name}_z`, "uint8", [rows, blocks])
    : undefined
  const decoded = new Float32Array(columns)
  const batch = {
    q: new Uint8Array(batchRows * rowBytes),
    scales: new Float32Array(batchRows * blocks),
    zeros: new Uint8Array(batchRows * blocks),
  }
  inBatches(matrix, (first, count) => {
    for (let i = 0; i < count; i++) {
      const [from, to] = [i * blocks, (i + 1) * blocks]
      const row = {
        q: batch.q.subarray(from * blockSize, to * blockSize),
        scales: batch.scales.subarray(from, to),
        zeros: batch.zeros.subarray(from, to),
      }
      quantizeRow(matrix.typeOf(first + i), matrix.row(first + i), decoded, row)
    }
    graph.store.write(q, first * rowBytes, batch.q.subarray(0, count * rowBytes))
    graph.store.write(scales, first * blocks * 4, batch.scales.subarray(0, count * blocks))
    if (zeros) graph.store.write(zeros, first * blocks, batch.zeros.subarray(0, count * blocks))
  })
  return inBlocks(graph, [x, `${name}_q`, `${name}_s`, ...(zeros ? [`${name}_z`] : [])], matrix, 8)
}

/**
 * Adds the sum of each block of `x [B, S, columns]` times the block's shift: exact, while the
 * operator's own zero points are whole levels.
 */
const plusShifts = (
  graph: GraphBuilder,
  x: Value,
  product: Value,
  shifts: Value,
  blocks: number,
): Value => {
  const inBlocks = graph.node("Reshape", [x, graph.ints([0, 0, blocks, blockSize])])
  const sums = graph.node("ReduceSum", [inBlocks, graph.ints([3])], { attributes: { keepdims: 0 } })
  return graph.node("Add", [product, graph.matmul(sums, shifts, { transposed: 2 })])
}

const channelLinear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const { rows, columns } = matrix
  const name = graph.name("w")
  const q = graph.weights(`${name}_q`, "int8", [columns, rows])
  const scales = graph.weights(`${name}_s`, "float", [rows])
  writeChannels(graph.store, { q, scales }, matrix, inBatches)
  return channelProduct(graph, x, matrix, { q: `${name}_q`, scales: `${name}_s` })
}

const int4Linear = (graph: GraphBuilder, x: Value, matrix: Matrix): Value => {
  const { rows, columns } = matrix
  refusePartialBlocks(matrix)
  const blocks = columns / blockSize
  const name = graph.name("w")
  const q = graph.weights(`${name}_q`, "uint8", [rows, blocks, blockSize / 2])
  const scales = graph.weights(`${name}_s`, "float", [rows, blocks])
  const shifts = someRow(matrix, needsShifts)
    ? graph.weights(`${name}_m`, "float", [rows, blocks])
    : undefined
  const decoded = new Float32Array(columns)
  const batch = {
    q: new Uint8Array((batchRows * columns) / 2),
    scales: new Float32Array(batchRows * blocks),
    shifts: new Float32Array(batchRows * blocks),
  }
  inBatches(matrix, (first, count) => {
    for (let i = 0; i < count; i++) {
      const [from, to] = [i * blocks, (i + 1) * blocks]
      const row = {
        q: batch.q.subarray((from * blockSize) / 2, (to * blockSize) / 2),
        scales: batch.scales.subarray(from, to),
        shifts: batch.shifts.subarray(from, to),
      }
      quantizeRowTo4(matrix.typeOf(first + i), matrix.row(first + i), decoded, row)
    }
    graph.store.write(q, (first * columns) / 2, batch.q.subarray(0, (count * columns) / 2))
    graph.store.write(scales, first * blocks * 4, batch.scales.subarray(0, count * blocks))
    if (shifts)
      graph.store.write(shifts, first * blocks * 4, batch.shifts.subarray(0, count * blocks))
  })
  const product = inBlocks(graph, [x, `${name}_q`, `${name}_s`], matrix, 4)
  return shifts ? plusShifts(graph, x, product, `${name}_m`, blocks) : product
}
