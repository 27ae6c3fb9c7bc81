import type { EncoderBuilding } from "../../encoding/encoder-model.ts"
import { lookup, product, vector } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata, numberOr, textIn } from "../../weights/gguf-metadata.ts"
import { decodeRow, matrixOf } from "../../weights/matrix.ts"
import { Unsupported } from "../../weights/model-file-error.ts"

/** Sizes of a T5EncoderModel with gated GELU (T5 1.1). */
export interface T5Config {
  readonly width: number
  readonly heads: number
  readonly headSize: number
  readonly feedForward: number
  readonly layers: number
  readonly vocabulary: number
  readonly buckets: number
  /** The distance from which on all share a bucket. */
  readonly farthest: number
  readonly normEpsilon: number
}

/** The most tokens that a graph reads, by the table of its distances. */
const maxTokens = 1024

export const t5Config = (json: Metadata): T5Config => {
  const activation = textIn(json, "feed_forward_proj")
  if (activation !== "gated-gelu")
    throw new Unsupported(
      `'feed_forward_proj' is '${activation}'; this backend runs 'gated-gelu', as T5 1.1 has it`,
    )
  return {
    width: countIn(json, "d_model", 65_536),
    heads: countIn(json, "num_heads", 1024),
    headSize: countIn(json, "d_kv", 1024),
    feedForward: countIn(json, "d_ff", 1_048_576),
    layers: countIn(json, "num_layers", 512),
    vocabulary: countIn(json, "vocab_size", 2 ** 24),
    buckets: countOr(json, "relative_attention_num_buckets", 1024, 32),
    farthest: countOr(json, "relative_attention_max_distance", 65_536, 128),
    normEpsilon: numberOr(json, "layer_norm_epsilon", 1e-6),
  }
}

/**
 * The bucket of a key that lies `distance` tokens behind its query (Raffel et al., arXiv 1910.10683):
 * half of the buckets are for each direction, near distances have one each, and far ones share them
 * by their logarithm.
 */
export const bucketOf = (
  distance: number,
  { buckets, farthest }: Pick<T5Config, "buckets" | "farthest">,
): number => {
  const half = buckets >> 1
  const exact = half >> 1
  const size = Math.abs(distance)
  const side = distance > 0 ? half : 0
  if (size < exact) return side + size
  const far = Math.log(Math.fround(size / exact)) / Math.log(farthest / exact)
  return side + Math.min(half - 1, exact + Math.trunc(far * (half - exact)))
}

/** What relative positions add to the scores of attention, `[1,heads,S,S]`, in all layers. */
const relativeBias = (building: EncoderBuilding, config: T5Config, ids: Value): Value => {
  const { graph, file } = building
  const { heads, buckets } = config
  const name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
  const matrix = matrixOf(file, name, { rows: buckets, columns: heads })
  const distances = 2 * maxTokens - 1
  const values = new Float32Array(heads * distances)
  const row = new Float32Array(heads)
  for (let i = 0; i < distances; i++) {
    decodeRow(matrix, bucketOf(i - maxTokens + 1, config), row)
    for (let head = 0; head < heads; head++) values[head * distances + i] = row[head]!
  }
  const table = graph.name("distances")
  graph.store.write(graph.weights(table, "float", [heads, distances]), 0, values)
  const count = graph.node("Squeeze", [
    graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } }),
    graph.ints([0]),
  ])
  const places = graph.node("Range", [graph.ints(0), count, graph.ints(1)])
  const behind = graph.node("Sub", [places, graph.node("Unsqueeze", [places, graph.ints([1])])])
  const index = graph.node("Add", [behind, graph.ints(maxTokens - 1)])
  const bias = graph.node("Gather", [table, index], { attributes: { axis: 1 } })
  return graph.node("Unsqueeze", [bias, graph.ints([0])])
}

const norm = (building: EncoderBuilding, config: T5Config, name: string, x: Value): Value =>
  building.graph.node(
    "SimplifiedLayerNormalization",
    [x, vector(building, `${name}.weight`, config.width)],
    { attributes: { axis: -1, epsilon: { float: config.normEpsilon }, stash_type: 1 } },
  )

const attention = (
  building: EncoderBuilding,
  { width, heads, headSize }: T5Config,
  name: string,
  x: Value,
  bias: Value,
): Value => {
  const { graph } = building
  const inner = heads * headSize
  const [q, k, v] = ["q", "k", "v"].map((part) =>
    product(building, `${name}.${part}`, x, { rows: inner, columns: width }),
  )
  // its scores are not divided by the root of the heads' size
  const all = graph.fused("MultiHeadAttention", [q!, k!, v!, "", "", bias], {
    num_heads: heads,
    scale: { float: 1 },
  })
  return product(building, `${name}.o`, all, { rows: width, columns: inner })
}

const feedForward = (
  building: EncoderBuilding,
  { width, feedForward: inner }: T5Config,
  name: string,
  x: Value,
): Value => {
  const { graph } = building
  const [gate, up] = ["wi_0", "wi_1"].map((part) =>
    product(building, `${name}.${part}`, x, { rows: inner, columns: width }),
  )
  const hidden = graph.node("Mul", [graph.fused("FastGelu", [gate!]), up!])
  return product(building, `${name}.wo`, hidden, { rows: width, columns: inner })
}

/**
 * The encoder of T5 1.1 (Raffel et al., arXiv 1910.10683), which reads padding as any token. In:
 * `input_ids [1,S]`, at most 1,024. Out: `states [1,S,width]`.
 */
export const buildT5Encoder = (
  building: EncoderBuilding,
  config: T5Config,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph, file } = building
  const { width, vocabulary, layers } = config
  const ids = graph.input("input_ids", "int64", [1, "S"])
  const words = file.has("shared.weight") ? "shared.weight" : "encoder.embed_tokens.weight"
  const bias = relativeBias(building, config, ids)
  let x = lookup(building, words, { rows: vocabulary, columns: width }, ids)
  for (let layer = 0; layer < layers; layer++) {
    progress(`layer ${layer + 1} of ${layers}`)
    const name = `encoder.block.${layer}.layer`
    const plus = (part: Value) => graph.node("Add", [x, part])
    const before = norm(building, config, `${name}.0.layer_norm`, x)
    x = plus(attention(building, config, `${name}.0.SelfAttention`, before, bias))
    const between = norm(building, config, `${name}.1.layer_norm`, x)
    x = plus(feedForward(building, config, `${name}.1.DenseReluDense`, between))
  }
  const states = norm(building, config, "encoder.final_layer_norm", x)
  graph.output("states", states, "float", [1, "S", width])
}
