import { decodeRow, type Matrix } from "../weights/matrix.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import type { StoredWeights, WeightStore } from "./weight-store.ts"

/** Levels of a weight on each side of 0. */
const weightLevels = 127
/** Levels of an input's higher digit on each side of 0, and of the lower digit within one of it. */
const highLevels = 127
const lowLevels = 254
const zero = 128

/** Makes integers of a row of weights; returns the scale, of which the row is multiples. */
export const quantizeChannel = (weights: Float32Array, into: Int8Array): number => {
  let most = 0
  for (const weight of weights) most = Math.max(most, Math.abs(weight))
  const scale = most / weightLevels
  const factor = most === 0 ? 0 : weightLevels / most
  for (let i = 0; i < weights.length; i++) into[i] = Math.round(weights[i]! * factor)
  return scale
}

interface Regions {
  readonly q: StoredWeights
  readonly scales: StoredWeights
}

/** Rows that are transposed in memory before they are written. */
const slabBytes = 2 ** 24

/**
 * Writes a matrix as integers, a column after another, and the scales of its rows, which are the
 * output channels. `inBatches` says which rows at a time.
 */
export const writeChannels = (
  store: WeightStore,
  { q, scales }: Regions,
  matrix: Matrix,
  inBatches: (matrix: Matrix, convert: (first: number, count: number) => void) => void,
): void => {
  const { rows, columns } = matrix
  const slabRows = Math.min(rows, Math.max(64, Math.floor(slabBytes / columns)))
  const slab = new Int8Array(slabRows * columns)
  const found = new Float32Array(rows)
  const decoded = new Float32Array(columns)
  const integers = new Int8Array(columns)
  let written = 0
  const flush = (until: number): void => {
    const count = until - written
    for (let column = 0; column < columns; column++) {
      const from = column * slabRows
      store.write(q, column * rows + written, slab.subarray(from, from + count))
    }
    written = until
  }
  inBatches(matrix, (first, count) => {
    for (let row = first; row < first + count; row++) {
      decodeRow(matrix, row, decoded)
      found[row] = quantizeChannel(decoded, integers)
      if (row - written === slabRows) flush(row)
      const at = row - written
      for (let column = 0; column < columns; column++)
        slab[column * slabRows + at] = integers[column]!
    }
  })
  flush(rows)
  store.write(scales, 0, found)
}

/**
 * `x [.., columns]` times a matrix that `writeChannels` has written: `[.., rows]`. A row of `x` is
 * divided by its root mean square, after which no number of it is beyond the square root of their
 * count, and is then written in two digits of 8 bits (16 together), which stand as rows of one
 * product of integers. Integers add up exactly, so a row has the same bits in any company, and the
 * CPU's units for 8 bits (VNNI, AMX) do the work.
 */
export const channelProduct = (
  graph: GraphBuilder,
  x: Value,
  { rows, columns }: Pick<Matrix, "rows" | "columns">,
  { q, scales }: { readonly q: Value; readonly scales: Value },
): Value => {
  const [unit, inverse] = graph.nodeWith(
    "SimplifiedLayerNormalization",
    [x, graph.floats(new Array<number>(columns).fill(1))],
    [graph.name("unit"), graph.name("inverse")],
    // a row of zeros stays one
    { attributes: { axis: -1, epsilon: { float: 1e-20 }, stash_type: 1 } },
  )
  const highScale = Math.sqrt(columns) / highLevels
  const [high, low] = [graph.floats(highScale), graph.floats(highScale / lowLevels)]
  const point = graph.zeroPoint(zero)
  const highs = graph.node("QuantizeLinear", [unit!, high, point])
  const rest = graph.node("Sub", [unit!, graph.node("DequantizeLinear", [highs, high, point])])
  const lows = graph.node("QuantizeLinear", [rest, low, point])
  const digits = graph.concat([highs, lows], 0)
  const sums = graph.fused("MatMulIntegerToFloat", [digits, q, low, scales, point])
  // as a product with the places of the digits: ONNX Runtime adds two halves of a tensor slower
  const places = graph.node("Reshape", [graph.floats([lowLevels, 1]), graph.ints([1, 2])])
  const joined = graph.node("MatMul", [places, graph.node("Reshape", [sums, graph.ints([2, -1])])])
  const leading = graph.node("Shape", [x], { attributes: { start: 0, end: -1 } })
  const shape = graph.concat([leading, graph.ints([rows])], 0)
  return graph.node("Div", [graph.node("Reshape", [joined, shape]), inverse!])
}
