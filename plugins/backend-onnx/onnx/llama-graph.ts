import type { GgufFile } from "../weights/gguf-file.ts"
import { halvesLayout, matrixOf, stacked, vectorOf } from "../weights/matrix.ts"
import { type AttentionFrame, attention, attentionFrame } from "./attention.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { linear, type Precision } from "./linear.ts"
import type { LlamaConfig } from "./llama-config.ts"

/** Raise it whenever a graph that was built before would no longer do. */
export const llamaGraphVersion = 1

interface Building {
  readonly graph: GraphBuilder
  readonly config: LlamaConfig
  readonly file: GgufFile
  readonly precision: Precision
}

/** The residual stream: `sum` is complete, `pending` still has to be added, which the next norm does in the same node. */
interface Stream {
  readonly sum: Value
  readonly pending: Value | undefined
}

const rotaryTables = ({ graph, config, file }: Building): void => {
  const half = config.headSize / 2
  const factors = file.header.tensors.has("rope_freqs.weight") ? vectorOf(file, "rope_freqs.weight", half) : new Float32Array(half).fill(1)
  for (const [name, wave] of [
    ["cos", Math.cos],
    ["sin", Math.sin],
  ] as const) {
    const region = graph.weights(name, "float", [config.contextTokens, half])
    const table = new Float32Array(config.contextTokens * half)
    for (let i = 0; i < half; i++) {
      const frequency = config.ropeBase ** (-i / half) / factors[i]!
      for (let position = 0; position < config.contextTokens; position++) table[position * half + i] = wave(position * frequency)
    }
    graph.store.write(region, 0, table)
  }
}

const norm = ({ graph, config, file }: Building, tensor: string, stream: Stream): { readonly normed: Value; readonly stream: Stream } => {
  const weights = graph.floats([...vectorOf(file, tensor, config.width)])
  const epsilon = { float: config.normEpsilon }
  if (stream.pending === undefined)
    return { normed: graph.node("SimplifiedLayerNormalization", [stream.sum, weights], { attributes: { axis: -1, epsilon, stash_type: 1 } }), stream }
  const [normed, sum] = [graph.name("norm"), graph.name("sum")]
  graph.nodeWith("SkipSimplifiedLayerNormalization", [stream.sum, stream.pending, weights], [normed, "", "", sum], { attributes: { epsilon }, domain: "com.microsoft" })
  return { normed, stream: { sum, pending: undefined } }
}

const splitLast = (graph: GraphBuilder, value: Value, sizes: readonly number[]): readonly Value[] =>
  graph.nodeWith(
    "Split",
    [value, graph.ints(sizes)],
    sizes.map(() => graph.name("part")),
    { attributes: { axis: -1 } },
  )

const matrixIn = ({ file }: Building, name: string, rows: number, columns: number) => matrixOf(file, name, { rows, columns })

interface Attended {
  readonly out: Value
  readonly keys: Value
  readonly values: Value
}

const selfAttention = (building: Building, layer: number, frame: AttentionFrame, normed: Value): Attended => {
  const { graph, config, precision } = building
  const [all, kv] = [config.heads * config.headSize, config.kvHeads * config.headSize]
  const weights = (name: string, rows: number) => matrixIn(building, `blk.${layer}.${name}.weight`, rows, config.width)
  const fused = stacked([halvesLayout(weights("attn_q", all), config.heads), halvesLayout(weights("attn_k", kv), config.kvHeads), weights("attn_v", kv)])
  const [q, k, v] = splitLast(graph, linear(graph, normed, fused, precision), [all, kv, kv])
  const rotate = (value: Value, heads: number) => graph.fused("RotaryEmbedding", [value, "position_ids", "cos", "sin"], { num_heads: heads, interleaved: 0 })
  const keys = rotate(k!, config.kvHeads)
  const past = { keys: `past.${layer}.k`, values: `past.${layer}.v` }
  const attended = attention(graph, config, frame, rotate(q!, config.heads), keys, v!, past)
  return { out: linear(graph, attended, matrixIn(building, `blk.${layer}.attn_output.weight`, config.width, all), precision), keys, values: v! }
}

const feedForward = (building: Building, layer: number, normed: Value): Value => {
  const { graph, config, precision } = building
  const weights = (name: string) => matrixIn(building, `blk.${layer}.${name}.weight`, config.feedForward, config.width)
  const [gate, up] = splitLast(graph, linear(graph, normed, stacked([weights("ffn_gate"), weights("ffn_up")]), precision), [config.feedForward, config.feedForward])
  // QuickGelu with alpha 1 is SiLU
  const active = graph.node("Mul", [graph.fused("QuickGelu", [gate!], { alpha: { float: 1 } }), up!])
  return linear(graph, active, matrixIn(building, `blk.${layer}.ffn_down.weight`, config.width, config.feedForward), precision)
}

const declareInputs = ({ graph, config }: Building): void => {
  graph.input("x", "float", ["B", "S", config.width])
  graph.input("position_ids", "int64", ["B", "S"])
  graph.input("past_lens", "int64", ["B"])
  graph.input("logit_idx", "int64", ["R"])
  for (let layer = 0; layer < config.layers; layer++) for (const kind of ["k", "v"]) graph.input(`past.${layer}.${kind}`, "float", ["B", config.kvHeads, "P", config.headSize])
}

/**
 * The graph of a Llama-family decoder (Touvron et al., arXiv 2302.13971) that answers only the NEW keys and values, so that the cache is never copied.
 *
 * In: `x [B,S,width]` (embedded tokens), `position_ids [B,S]`, `past_lens [B]`, `logit_idx [R]` (rows of B*S whose logits are wanted), `past.{l}.k|v [B,KV,P,H]`.
 * Out: `logits [R,vocabulary]`, `new_kv [2*layers*B, S, KV*H]`: keys then values, layer by layer.
 */
export const buildLlamaGraph = (building: Building, progress: (detail: string) => void): void => {
  const { graph, config, file, precision } = building
  declareInputs(building)
  rotaryTables(building)
  const frame = attentionFrame(graph, config, "x", "past.0.k")
  const fresh: Value[] = []
  let stream: Stream = { sum: "x", pending: undefined }
  for (let layer = 0; layer < config.layers; layer++) {
    progress(`building the graph: layer ${layer + 1} of ${config.layers}`)
    const before = norm(building, `blk.${layer}.attn_norm.weight`, stream)
    const attended = selfAttention(building, layer, frame, before.normed)
    fresh.push(attended.keys, attended.values)
    const between = norm(building, `blk.${layer}.ffn_norm.weight`, { sum: before.stream.sum, pending: attended.out })
    stream = { sum: between.stream.sum, pending: feedForward(building, layer, between.normed) }
  }
  graph.output("new_kv", graph.node("Concat", fresh, { attributes: { axis: 0 } }), "float", ["LB", "S", config.kvHeads * config.headSize])
  progress("building the graph: the head")
  const last = norm(building, "output_norm.weight", stream).normed
  const chosen = graph.node("Gather", [graph.node("Reshape", [last, graph.ints([-1, config.width])]), "logit_idx"], { attributes: { axis: 0 } })
  const head = file.header.tensors.has("output.weight") ? "output.weight" : "token_embd.weight"
  graph.output("logits", linear(graph, chosen, matrixIn(building, head, config.vocabulary, config.width), precision), "float", ["R", config.vocabulary])
}
