import type { LayerMatrix, LayerNorm } from "../architectures/tensor-names.ts"
import { decodeRow, rowsOf } from "../weights/matrix.ts"
import { plusAdapters } from "./adapter-inputs.ts"
import { type AttentionFrame, attention, attentionFrame } from "./attention.ts"
import type { Building } from "./building.ts"
import { mixture } from "./experts.ts"
import type { Value } from "./graph-builder.ts"
import { linear, type Precision } from "./linear.ts"
import { gated, products } from "./products.ts"
import { type RotaryTables, rotaryTables } from "./rotary-tables.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const decoderGraphVersion = 7

/** The residual stream: `pending` is added to `sum` by the next norm, in the same fused node. */
interface Stream {
  readonly sum: Value
  readonly pending: Value | undefined
}

const plainNorm = ({ graph, config }: Building, value: Value, weights: Float32Array): Value =>
  graph.node("SimplifiedLayerNormalization", [value, graph.floats([...weights])], {
    attributes: { axis: -1, epsilon: { float: config.normEpsilon }, stash_type: 1 },
  })

const norm = (
  building: Building,
  weights: Float32Array,
  stream: Stream,
): { readonly normed: Value; readonly stream: Stream } => {
  const { graph, config } = building
  if (stream.pending === undefined)
    return { normed: plainNorm(building, stream.sum, weights), stream }
  const [normed, sum] = [graph.name("norm"), graph.name("sum")]
  const attributes = { epsilon: { float: config.normEpsilon } }
  graph.nodeWith(
    "SkipSimplifiedLayerNormalization",
    [stream.sum, stream.pending, graph.floats([...weights])],
    [normed, "", "", sum],
    { attributes, domain: "com.microsoft" },
  )
  return { normed, stream: { sum, pending: undefined } }
}

/** The products of matrices of a layer with the same input, with biases and adapters. */
const project = (
  building: Building,
  layer: number,
  parts: readonly LayerMatrix[],
  x: Value,
): readonly Value[] => {
  const { graph, weights, precision, adapters } = building
  const matrices = parts.map((part) => weights.matrix(layer, part))
  return products(building, matrices, (matrix, from, to) => {
    const group = parts.slice(from, to)
    const bare = linear(graph, x, matrix, precision, weights.bias(layer, group))
    return adapters ? plusAdapters(graph, x, bare, { layer, parts: group, ...matrix }) : bare
  })
}

/** Normalizes the output of a layer's part where the architecture does. */
const outerNorm = (building: Building, layer: number, part: LayerNorm, value: Value): Value =>
  building.config.outerNorms
    ? plainNorm(building, value, building.weights.norm(layer, part))
    : value

interface Attended {
  readonly out: Value
  readonly keys: Value
  readonly values: Value
}

const selfAttention = (
  building: Building,
  layer: number,
  frame: AttentionFrame,
  rotary: RotaryTables | undefined,
  normed: Value,
): Attended => {
  const { graph, config, weights } = building
  const { heads, kvHeads, headSize } = config
  const [q, k, v] = project(building, layer, ["q", "k", "v"], normed)
  const perHead = (value: Value, count: number, part: "queries" | "keys"): Value => {
    if (!config.headNorms) return value
    const apart = graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])])
    return graph.node("Reshape", [
      plainNorm(building, apart, weights.norm(layer, part)),
      graph.ints([0, 0, count * headSize]),
    ])
  }
  const rotate = (value: Value, count: number) =>
    rotary
      ? graph.fused("RotaryEmbedding", [value, "position_ids", rotary.cos, rotary.sin], {
          num_heads: count,
          interleaved: 0,
          ...(rotary.dimensions < headSize && { rotary_embedding_dim: rotary.dimensions }),
        })
      : value
  const keys = rotate(perHead(k!, kvHeads, "keys"), kvHeads)
  const queries = rotate(perHead(q!, heads, "queries"), heads)
  const past = { keys: `past.${layer}.k`, values: `past.${layer}.v` }
  const attended = attention(graph, config, frame, {
    queries,
    keys,
    values: v!,
    past,
    window: config.windows[layer],
  })
  const [out] = project(building, layer, ["out"], attended)
  return { out: outerNorm(building, layer, "afterAttention", out!), keys, values: v! }
}

const feedForward = (building: Building, layer: number, normed: Value): Value => {
  if (building.config.experts?.layers[layer]) return mixture(building, layer, normed)
  const [gate, up] = project(building, layer, ["gate", "up"], normed)
  const [down] = project(building, layer, ["down"], gated(building, gate!, up!))
  return outerNorm(building, layer, "afterFeedForward", down!)
}

const declareInputs = ({ graph, config }: Building): void => {
  graph.input("x", "float", ["B", "S", config.width])
  graph.input("position_ids", "int64", ["B", "S"])
  graph.input("past_lens", "int64", ["B"])
  graph.input("logit_idx", "int64", ["R"])
  for (let layer = 0; layer < config.layers; layer++)
    for (const kind of ["k", "v"])
      graph.input(`past.${layer}.${kind}`, "float", ["PB", config.kvHeads, "P", config.headSize])
}

/** Checks for non-finite values in an embedding table that is not converted as the head. */
const refuseBrokenEmbedding = ({ config, weights }: Building): void => {
  const table = weights.embedding()
  const row = new Float32Array(table.columns)
  if (!config.tiedHead)
    for (let token = 0; token < table.rows; token++) decodeRow(table, token, row)
}

/** The head is never rounded to 4 bits, which cost too much quality there. */
const headPrecision = (precision: Precision): Precision =>
  precision === "int4" ? "auto" : precision

/**
 * Builds the graph of a Llama-like decoder (Touvron et al., arXiv 2302.13971) that returns only the
 * NEW keys and values, so that the cache is never copied.
 *
 * In: `x [B,S,width]` (embedded tokens), `position_ids [B,S]`, `past_lens [B]`, `logit_idx [R]`
 * (rows of B*S whose logits are wanted), `past.{l}.k|v [PB,KV,P,H]`, PB = B, or 1 for a past that
 * all rows share, with S = 1.
 * Out: `logits [1,R,vocabulary]`, `new_kv [2*layers*B, S, KV*H]`: keys then values, layer by layer.
 */
export const buildDecoderGraph = (
  building: Building,
  progress: (doneLayers: number, ofLayers: number) => void,
): void => {
  const { graph, config, weights, precision, headRows } = building
  declareInputs(building)
  const rotary = rotaryTables(graph, config)
  if (headRows === undefined) refuseBrokenEmbedding(building)
  const frame = attentionFrame(graph, config, "x", "past.0.k")
  const fresh: Value[] = []
  let stream: Stream = { sum: "x", pending: undefined }
  for (let layer = 0; layer < config.layers; layer++) {
    progress(layer, config.layers + 1)
    const before = norm(building, weights.norm(layer, "beforeAttention"), stream)
    const attended = selfAttention(building, layer, frame, rotary[layer], before.normed)
    fresh.push(attended.keys, attended.values)
    const between = norm(building, weights.norm(layer, "beforeFeedForward"), {
      sum: before.stream.sum,
      pending: attended.out,
    })
    stream = { sum: between.stream.sum, pending: feedForward(building, layer, between.normed) }
  }
  graph.output("new_kv", graph.concat(fresh, 0), "float", [
    "LB",
    "S",
    config.kvHeads * config.headSize,
  ])
  progress(config.layers, config.layers + 1)
  const last = norm(building, weights.finalNorm(), stream).normed
  const chosen = graph.node(
    "Gather",
    [graph.node("Reshape", [last, graph.ints([1, -1, config.width])]), "logit_idx"],
    { attributes: { axis: 1 } },
  )
  const head = rowsOf(weights.head(), 0, headRows ?? config.vocabulary)
  const logits = linear(graph, chosen, head, headPrecision(precision))
  graph.output("logits", logits, "float", [1, "R", head.rows])
}
