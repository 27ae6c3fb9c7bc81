import type { BertConfig } from "../architectures/bert-config.ts"
import type { GraphBuilder, Value } from "../onnx/graph-builder.ts"
import { linear, type Precision } from "../onnx/linear.ts"
import { decodeRow, matrixOf, stacked, vectorOf } from "../weights/matrix.ts"
import type { TensorFile } from "../weights/tensor-file.ts"
import { spaceDimensions, stackedRotations } from "./stacked-rotations.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const bertGraphVersion = 1

interface Building {
  readonly graph: GraphBuilder
  readonly config: BertConfig
  readonly file: TensorFile
  readonly precision: Precision
}

/** A tensor of one row as a constant `[length]`. */
const vector = ({ graph, file }: Building, name: string, length: number): Value =>
  graph.floats([...vectorOf(file, name, length)])

/** An embedding table as a constant `[rows, columns]` of external data. */
const table = ({ graph, file }: Building, tensor: string, rows: number, columns: number): Value => {
  const name = graph.name("table")
  const region = graph.weights(name, "float", [rows, columns])
  const matrix = matrixOf(file, tensor, { rows, columns })
  const values = new Float32Array(columns)
  for (let row = 0; row < rows; row++) {
    decodeRow(matrix, row, values)
    graph.store.write(region, row * values.byteLength, values)
  }
  return name
}

const norm = (building: Building, prefix: string, x: Value, added: Value, bias: Value): Value => {
  const { graph, config } = building
  const weights = [
    vector(building, `${prefix}.LayerNorm.weight`, config.width),
    vector(building, `${prefix}.LayerNorm.bias`, config.width),
  ]
  return graph.fused("SkipLayerNormalization", [x, added, ...weights, bias], {
    epsilon: { float: config.normEpsilon },
  })
}

const dense = (
  building: Building,
  name: string,
  x: Value,
  rows: number,
  columns: number,
): { readonly out: Value; readonly bias: Value } => ({
  out: linear(
    building.graph,
    x,
    matrixOf(building.file, `${name}.weight`, { rows, columns }),
    building.precision,
  ),
  bias: vector(building, `${name}.bias`, rows),
})

const selfAttention = (building: Building, prefix: string, x: Value, mask: Value): Value => {
  const { graph, config, file, precision } = building
  const { width, heads } = config
  const names = ["query", "key", "value"].map((name) => `${prefix}.attention.self.${name}`)
  const weights = stacked(
    names.map((name) => matrixOf(file, `${name}.weight`, { rows: width, columns: width })),
  )
  const bias = graph.floats(names.flatMap((name) => [...vectorOf(file, `${name}.bias`, width)]))
  const all = graph.node("Add", [linear(graph, x, weights, precision), bias])
  const parts = graph.nodeWith(
    "Split",
    [all],
    [graph.name("q"), graph.name("k"), graph.name("v")],
    { attributes: { axis: -1 } },
  )
  const [q, k, v] = parts.map((part) =>
    graph.node(
      "Transpose",
      [graph.node("Reshape", [part, graph.ints([0, 0, heads, width / heads])])],
      { attributes: { perm: [0, 2, 1, 3] } },
    ),
  )
  const scores = graph.fused("FusedMatMul", [q!, k!], {
    transB: 1,
    alpha: { float: 1 / Math.sqrt(width / heads) },
  })
  const weighted = graph.node("MatMul", [
    graph.node("Softmax", [graph.node("Add", [scores, mask])], { attributes: { axis: -1 } }),
    v!,
  ])
  return graph.node("Reshape", [
    graph.node("Transpose", [weighted], { attributes: { perm: [0, 2, 1, 3] } }),
    graph.ints([0, 0, width]),
  ])
}

const layer = (building: Building, index: number, x: Value, mask: Value): Value => {
  const { graph, config } = building
  const { width, feedForward } = config
  const prefix = `encoder.layer.${index}`
  const attended = dense(
    building,
    `${prefix}.attention.output.dense`,
    selfAttention(building, prefix, x, mask),
    width,
    width,
  )
  const between = norm(building, `${prefix}.attention.output`, x, attended.out, attended.bias)
  const inner = dense(building, `${prefix}.intermediate.dense`, between, feedForward, width)
  const outer = dense(
    building,
    `${prefix}.output.dense`,
    graph.fused("BiasGelu", [inner.out, inner.bias]),
    width,
    feedForward,
  )
  return norm(building, `${prefix}.output`, between, outer.out, outer.bias)
}

/** Real tokens as 1 and padding as 0, `[B,S]`, and the positions `[S]`. */
const extent = ({ graph }: Building) => {
  const length = graph.node("Squeeze", [
    graph.node("Shape", ["input_ids"], { attributes: { start: 1, end: 2 } }),
    graph.ints([0]),
  ])
  const positions = graph.node("Range", [graph.ints(0), length, graph.ints(1)])
  const real = graph.node("Less", [
    positions,
    graph.node("Unsqueeze", ["lengths", graph.ints([1])]),
  ])
  return { positions, real: graph.node("Where", [real, graph.floats(1), graph.floats(0)]) }
}

const embeddings = (building: Building, positions: Value): Value => {
  const { graph, config } = building
  const { width } = config
  const words = graph.node("Gather", [
    table(building, "embeddings.word_embeddings.weight", config.vocabulary, width),
    "input_ids",
  ])
  const places = graph.node("Gather", [
    table(building, "embeddings.position_embeddings.weight", config.positions, width),
    positions,
  ])
  // every text belongs to the first segment, so its embedding is a constant
  const segment = new Float32Array(width)
  const segments = building.file.tensor("embeddings.token_type_embeddings.weight")
  decodeRow(
    matrixOf(building.file, segments.name, { rows: segments.rows, columns: width }),
    0,
    segment,
  )
  const sum = graph.node("Add", [graph.node("Add", [words, graph.floats([...segment])]), places])
  const weights = [
    vector(building, "embeddings.LayerNorm.weight", width),
    vector(building, "embeddings.LayerNorm.bias", width),
  ]
  return graph.node("LayerNormalization", [sum, ...weights], {
    attributes: { axis: -1, epsilon: { float: config.normEpsilon } },
  })
}

/**
 * Mean pooling over the tokens that are not padding, L2 normalization, then the fixed map into the
 * embedding space: `[B, 2048]`.
 */
const pooled = ({ graph, config }: Building, x: Value, real: Value): Value => {
  const sums = graph.node("MatMul", [graph.node("Unsqueeze", [real, graph.ints([1])]), x])
  // normalization cancels the division by the token count, so the sum stands in for the mean
  const unit = graph.node("LpNormalization", [graph.node("Squeeze", [sums, graph.ints([1])])], {
    attributes: { axis: -1, p: 2 },
  })
  const region = graph.weights("map", "float", [spaceDimensions, config.width])
  graph.store.write(region, 0, stackedRotations(config.width, spaceDimensions))
  return graph.fused("FusedMatMul", [unit, "map"], { transB: 1 })
}

/**
 * The graph of a BERT sentence encoder (Devlin et al., arXiv 1810.04805; Reimers and Gurevych,
 * arXiv 1908.10084).
 * In: `input_ids [B,S]`, padded at the end, and `lengths [B]`. Out: `vectors [B,2048]` of norm 1.
 */
export const buildBertGraph = (building: Building, progress: (detail: string) => void): void => {
  const { graph, config } = building
  graph.input("input_ids", "int64", ["B", "S"])
  graph.input("lengths", "int64", ["B"])
  const { positions, real } = extent(building)
  const hidden = graph.node("Mul", [graph.node("Sub", [graph.floats(1), real]), graph.floats(-1e9)])
  const mask = graph.node("Unsqueeze", [hidden, graph.ints([1, 2])])
  let x = embeddings(building, positions)
  for (let index = 0; index < config.layers; index++) {
    progress(`building the graph: layer ${index + 1} of ${config.layers}`)
    x = layer(building, index, x, mask)
  }
  graph.output("vectors", pooled(building, x, real), "float", ["B", spaceDimensions])
}
