import type { DecoderConfig } from "../architectures/decoder-config.ts"
import { DecoderWeights } from "../architectures/decoder-weights.ts"
import { decoderConfig } from "../architectures/folder-config.ts"
import { folderNames } from "../architectures/tensor-names.ts"
import { decoderStates } from "../onnx/decoder-layers.ts"
import type { GraphBuilder, Value } from "../onnx/graph-builder.ts"
import { type QueriesKeysValues, turnedHeads } from "../onnx/heads.ts"
import type { Metadata } from "../weights/gguf-metadata.ts"
import { Unsupported } from "../weights/model-file-error.ts"
import type { EncoderBatch, EncoderBuilding, EncoderConfig, EncoderModel } from "./encoder-model.ts"
import { lookup } from "./encoder-parts.ts"

interface EmbedderConfig extends EncoderConfig {
  readonly decoder: DecoderConfig
  /** Whether tokens see those before them only. */
  readonly isCausal: boolean
}

/**
 * EmbeddingGemma's key and that of all others for attention in both directions. Of other families
 * transformers doesn't know the former, so it is left in what is read, which refuses it.
 */
const bidirectionalKey = "use_bidirectional_attention"
const causalKey = "is_causal"

const readConfig = (json: Metadata): EmbedderConfig => {
  const isGemma = (json.get("model_type") as unknown) === "gemma3_text"
  const isHalved = isGemma && (json.get(bidirectionalKey) as unknown) === true
  const own: readonly string[] = isGemma ? [causalKey, bidirectionalKey] : [causalKey]
  const rest = new Map([...json].filter(([key]) => !own.includes(key)))
  // a head that predicts tokens is not used, wherever it is
  const whole = { ...decoderConfig(rest), tiedHead: true }
  // half of the window is on each side, and a causal window has the token itself
  const windows = whole.windows.map((window) =>
    isHalved && window !== undefined ? Math.floor(window / 2) + 1 : window,
  )
  const decoder = { ...whole, windows }
  const { layers, width, heads, feedForward, vocabulary, normEpsilon } = decoder
  const family = decoder.architecture
  // absent is true, and null is false, as in transformers
  const isCausal = !isHalved && (!json.has(causalKey) || (json.get(causalKey) as unknown) === true)
  if (!isCausal && !isHalved && windows.some((window) => window !== undefined))
    throw new Unsupported(`it has a sliding window, and '${causalKey}' is ${json.get(causalKey)}`)
  return {
    ...{ family, name: family, layers, width, heads, feedForward, vocabulary, normEpsilon },
    maxTokens: decoder.contextTokens,
    decoder,
    isCausal,
  }
}

/**
 * What hides later tokens and those outside of a sliding window, `[1,1,S,S]`: padding is at the end,
 * so no token sees it. Where tokens see what follows, `[B,1,S,S]`, with the padding hidden.
 */
const maskOf = (
  graph: GraphBuilder,
  { positions, mask: padding }: EncoderBatch,
  isCausal: boolean,
  window: number | undefined,
): Value => {
  const column = graph.node("Unsqueeze", [positions, graph.ints([1])])
  const distance = graph.node("Sub", [column, positions])
  const far = isCausal ? distance : graph.node("Abs", [distance])
  const hidden = [
    ...(isCausal ? [graph.node("Less", [distance, graph.ints(0)])] : []),
    ...(window === undefined ? [] : [graph.node("Greater", [far, graph.ints(window - 1)])]),
  ]
  const additive = hidden
    .map((places) => graph.node("Where", [places, graph.floats(-1e9), graph.floats(0)]))
    .reduce((sum, one) => graph.node("Add", [sum, one]))
  return isCausal
    ? graph.node("Unsqueeze", [additive, graph.ints([0, 1])])
    : graph.node("Add", [padding, additive])
}

/**
 * Grouped-query attention (Ainslie et al., arXiv 2305.13245) without a cache; `mask` is `[..,G*S,S]`,
 * once for each of the G heads that share keys. Returns `[B,S,heads*headSize]`.
 */
export const groupedAttention = (
  graph: GraphBuilder,
  { heads, kvHeads, headSize, attentionScale }: DecoderConfig,
  { queries, keys, values }: QueriesKeysValues,
  mask: Value,
): Value => {
  const transposed = (value: Value) =>
    graph.node("Transpose", [value], { attributes: { perm: [0, 2, 1, 3] } })
  const split = (value: Value, count: number) =>
    transposed(graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])]))
  const grouped = graph.node("Reshape", [
    split(queries, heads),
    graph.ints([0, kvHeads, -1, headSize]),
  ])
  const scores = graph.matmul(grouped, split(keys, kvHeads), {
    transposed: 4,
    alpha: attentionScale,
  })
  const weights = graph.node("Softmax", [graph.node("Add", [scores, mask])], {
    attributes: { axis: -1 },
  })
  const sum = graph.node("MatMul", [weights, split(values, kvHeads)])
  const perHead = graph.node("Reshape", [sum, graph.ints([0, heads, -1, headSize])])
  return graph.node("Reshape", [transposed(perHead), graph.ints([0, 0, heads * headSize])])
}

const statesOf =
  ({ decoder: config, isCausal }: EmbedderConfig): EncoderModel["states"] =>
  (building: EncoderBuilding, batch) => {
    const { graph, file, precision } = building
    const names = folderNames(config.architecture, file)
    const { heads, kvHeads, vocabulary, width, embeddingScale, windows } = config
    const masks = new Map<number | undefined, Value>()
    const grouped = (window: number | undefined): Value => {
      if (!isCausal && window === undefined) return batch.mask
      const mask = maskOf(graph, batch, isCausal, window)
      return graph.concat(new Array<Value>(heads / kvHeads).fill(mask), 2)
    }
    const maskFor = (window: number | undefined): Value => {
      const mask = masks.get(window) ?? grouped(window)
      masks.set(window, mask)
      return mask
    }
    const table = { rows: vocabulary, columns: width }
    const words = lookup(building, `${names.embedding}.weight`, table, batch.ids)
    const weights = new DecoderWeights(file, names, config, false)
    const decoder = { graph, config, weights, precision }
    return decoderStates(decoder, {
      x: embeddingScale === 1 ? words : graph.node("Mul", [words, graph.floats(embeddingScale)]),
      positions: graph.ints([0]),
      attend: (heads) =>
        groupedAttention(graph, config, turnedHeads(decoder, heads), maskFor(windows[heads.layer])),
      progress: () => {},
    })
  }

/**
 * A decoder whose states are used in place of its predictions, as in Qwen3-Embedding (Zhang et al.,
 * arXiv 2506.05176): a token sees those before it, so that the last one has seen the whole text.
 */
export const decoder = (json: Metadata): EncoderModel => {
  const config = readConfig(json)
  return { config, states: statesOf(config) }
}
