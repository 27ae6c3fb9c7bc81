import type { GraphBuilder, Value } from "../onnx/graph-builder.ts"
import { linear } from "../onnx/linear.ts"
import type { StoredWeights } from "../onnx/weight-store.ts"
import {
  decodeHalves,
  decodeRow,
  type Matrix,
  matrixOf,
  stacked,
  vectorOf,
} from "../weights/matrix.ts"
import { Unsupported } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { EncoderBuilding } from "./encoder-model.ts"

/** The prefix of a folder's tensors: of the model alone, or of one with a head around it. */
export const prefixOf = (file: TensorSource, probe: string, prefixes: readonly string[]): string =>
  prefixes.find((prefix) => file.has(`${prefix}${probe}`)) ?? ""

/** A tensor of one row as a constant `[length]`. */
export const vector = ({ graph, file }: EncoderBuilding, name: string, length: number): Value =>
  graph.floats([...vectorOf(file, name, length)])

/** Writes a matrix as halves into a region. */
const writeHalves = ({ store }: GraphBuilder, matrix: Matrix, region: StoredWeights): void => {
  const values = new Uint16Array(matrix.columns)
  for (let row = 0; row < matrix.rows; row++) {
    decodeHalves(matrix, row, values)
    store.write(region, row * values.byteLength, values)
  }
}

/**
 * A tensor as external data: a table, or kernels, whose rows have a shape. Kept in 16 bits where the
 * precision is fp16.
 */
export const table = (
  building: EncoderBuilding,
  tensor: string,
  rows: number,
  ...rowShape: readonly number[]
): Value => {
  const { graph, file, precision } = building
  const columns = rowShape.reduce((a, b) => a * b)
  const matrix = matrixOf(file, tensor, { rows, columns })
  if (precision === "fp16") {
    const { region, value } = graph.halves([rows, ...rowShape])
    writeHalves(graph, matrix, region)
    return value
  }
  const name = graph.name("table")
  const region = graph.weights(name, "float", [rows, ...rowShape])
  const values = new Float32Array(columns)
  for (let row = 0; row < rows; row++) {
    decodeRow(matrix, row, values)
    graph.store.write(region, row * values.byteLength, values)
  }
  return name
}

/** A row of a matrix as levels around 128 and their scale; without loss where it is kept so. */
const levelsOf = (matrix: Matrix, row: number, values: Float32Array, into: Uint8Array): number => {
  decodeRow(matrix, row, values)
  const kept = matrix.typeOf(row).name === "I8" ? matrix.row(row).readFloatLE() : undefined
  const scale = kept ?? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127
  for (let i = 0; i < values.length; i++)
    into[i] = 128 + (scale !== 0 ? Math.round(values[i]! / scale) : 0)
  return scale
}

/**
 * The rows `indices` of an embedding table. A table of a model in 8 bits is kept in 8, too, with a
 * scale for each row; so is one that the file has so, whatever the precision. One in 16 bits is read
 * row by row, so that only these become floats.
 */
export const lookup = (
  building: EncoderBuilding,
  tensor: string,
  { rows, columns }: Sizes,
  indices: Value,
): Value => {
  const { graph, file, precision } = building
  const matrix = matrixOf(file, tensor, { rows, columns })
  const isLevels = matrix.typeOf(0).name === "I8"
  if (precision === "fp32" && !isLevels)
    return graph.node("Gather", [table(building, tensor, rows, columns), indices])
  const name = graph.name("table")
  if (precision === "fp16" && !isLevels) {
    writeHalves(graph, matrix, graph.weights(name, "float16", [rows, columns]))
    return graph.toFloat(graph.node("Gather", [name, indices]))
  }
  const levels = graph.weights(`${name}_q`, "uint8", [rows, columns])
  const scales = graph.weights(`${name}_s`, "float", [rows, 1])
  const [values, row, all] = [
    new Float32Array(columns),
    new Uint8Array(columns),
    new Float32Array(rows),
  ]
  for (let index = 0; index < rows; index++) {
    all[index] = levelsOf(matrix, index, values, row)
    graph.store.write(levels, index * columns, row)
  }
  graph.store.write(scales, 0, all)
  const found = graph.toFloat(graph.node("Gather", [`${name}_q`, indices]))
  const centred = graph.node("Sub", [found, graph.floats(128)])
  return graph.node("Mul", [centred, graph.node("Gather", [`${name}_s`, indices])])
}

/** The weights of a layer norm, and its bias where it has one; old files call them otherwise. */
const normWeights = (building: EncoderBuilding, name: string, width: number): readonly Value[] => {
  const { file } = building
  const weight = file.has(`${name}.gamma`) ? "gamma" : "weight"
  const bias = file.has(`${name}.beta`) ? "beta" : "bias"
  return [
    vector(building, `${name}.${weight}`, width),
    ...(file.has(`${name}.${bias}`) ? [vector(building, `${name}.${bias}`, width)] : []),
  ]
}

export interface NormOptions {
  readonly width: number
  readonly epsilon: number
}

/** Layer normalization of `x [.., width]` by the tensors `name.weight` and `name.bias`. */
export const layerNorm = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  { width, epsilon }: NormOptions,
): Value =>
  building.graph.node("LayerNormalization", [x, ...normWeights(building, name, width)], {
    attributes: { axis: -1, epsilon: { float: epsilon } },
  })

/** Layer normalization of `x + added + bias`, in one operator. */
export const skipNorm = (
  building: EncoderBuilding,
  name: string,
  [x, added, bias]: readonly [Value, Value, Value],
  { width, epsilon }: NormOptions,
): Value =>
  building.graph.fused(
    "SkipLayerNormalization",
    [x, added, ...normWeights(building, name, width), bias],
    { epsilon: { float: epsilon } },
  )

export interface Sizes {
  readonly rows: number
  readonly columns: number
}

/** `x [.., columns]` times the matrix `name.weight`, without its bias: `[.., rows]`. */
export const product = (building: EncoderBuilding, name: string, x: Value, sizes: Sizes): Value =>
  linear(building.graph, x, matrixOf(building.file, `${name}.weight`, sizes), building.precision)

export const plusBias = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  length: number,
): Value =>
  building.file.has(`${name}.bias`)
    ? building.graph.node("Add", [x, vector(building, `${name}.bias`, length)])
    : x

/**
 * `x` times the matrix `name.weight`, changed by a LoRA where the building takes them, plus
 * `name.bias` where there is one.
 */
export const dense = (building: EncoderBuilding, name: string, x: Value, sizes: Sizes): Value => {
  const own = product(building, name, x, sizes)
  const sum = building.adapted?.(name, x, own, sizes) ?? own
  return plusBias(building, name, sum, sizes.rows)
}

/** `x [.., width]` times several square matrices with their biases, as one product, and LoRAs. */
export const projections = (
  building: EncoderBuilding,
  names: readonly string[],
  x: Value,
  width: number,
): readonly Value[] => {
  const { graph, file, precision } = building
  const matrices = names.map(
    (name): Matrix => matrixOf(file, `${name}.weight`, { rows: width, columns: width }),
  )
  const all = linear(graph, x, stacked(matrices), precision)
  const biases = names.flatMap((name) =>
    file.has(`${name}.bias`) ? [...vectorOf(file, `${name}.bias`, width)] : [],
  )
  const sum = biases.length ? graph.node("Add", [all, graph.floats(biases)]) : all
  const parts = graph.nodeWith(
    "Split",
    [sum],
    names.map(() => graph.name("part")),
    { attributes: { axis: -1 } },
  )
  const { adapted } = building
  if (!adapted) return parts
  return names.map((name, i) => adapted(name, x, parts[i]!, { rows: width, columns: width }))
}

/**
 * Scaled dot-product attention (Vaswani et al., arXiv 1706.03762) without a cache. Queries, keys and
 * values are `[B,S,width]`; `mask` is added to the scores `[B,heads,S,S]`. Returns `[B,S,width]`.
 */
export const bidirectional = (
  { graph }: EncoderBuilding,
  parts: readonly Value[],
  { width, heads }: { readonly width: number; readonly heads: number },
  mask: Value | undefined,
): Value => {
  const [q, k, v] = parts.map((part) =>
    graph.node(
      "Transpose",
      [graph.node("Reshape", [part, graph.ints([0, 0, heads, width / heads])])],
      { attributes: { perm: [0, 2, 1, 3] } },
    ),
  )
  const scores = graph.matmul(q!, k!, {
    transposed: 4,
    alpha: 1 / Math.sqrt(width / heads),
  })
  const masked = mask === undefined ? scores : graph.node("Add", [scores, mask])
  const weighted = graph.node("MatMul", [
    graph.node("Softmax", [masked], { attributes: { axis: -1 } }),
    v!,
  ])
  return graph.node("Reshape", [
    graph.node("Transpose", [weighted], { attributes: { perm: [0, 2, 1, 3] } }),
    graph.ints([0, 0, width]),
  ])
}

const activations = ["gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "tanh"] as const
export type Activation = (typeof activations)[number]

/** The activation of a configuration; throws `Unsupported` for an unknown one. */
export const activationNamed = (name: string): Activation => {
  const found = activations.find((known) => known === name)
  if (found) return found
  throw new Unsupported(`its activation is '${name}'; this backend runs ${activations.join(", ")}`)
}

export const activated = ({ graph }: EncoderBuilding, name: Activation, x: Value): Value => {
  switch (name) {
    case "gelu":
      return graph.fused("Gelu", [x])
    case "gelu_new":
    case "gelu_pytorch_tanh":
      return graph.fused("FastGelu", [x])
    case "quick_gelu":
      return graph.fused("QuickGelu", [x], { alpha: { float: 1.702 } })
    case "relu":
      return graph.node("Relu", [x])
    case "tanh":
      return graph.node("Tanh", [x])
  }
}
