import type { DecoderConfig } from "../../architectures/decoder-config.ts"
import { DecoderWeights } from "../../architectures/decoder-weights.ts"
import { decoderConfig } from "../../architectures/folder-config.ts"
import { folderNames } from "../../architectures/tensor-names.ts"
import { groupedAttention } from "../../encoding/decoder.ts"
import type { EncoderBuilding } from "../../encoding/encoder-model.ts"
import { lookup } from "../../encoding/encoder-parts.ts"
import { statesAfter } from "../../onnx/decoder-layers.ts"
import type { GraphBuilder, Value } from "../../onnx/graph-builder.ts"
import { turnedHeads } from "../../onnx/heads.ts"
import type { Metadata } from "../../weights/gguf-metadata.ts"
import { Unsupported } from "../../weights/model-file-error.ts"

/** A Qwen3 whose states after some of its layers are read, one beside the other. */
export interface QwenConfig {
  readonly decoder: DecoderConfig
  /** The layers of the file. */
  readonly layers: number
  /** After how many layers states are read, rising. */
  readonly taps: readonly number[]
  readonly width: number
}

/** Layers after the last one that is read are left out of the graph. */
export const qwenConfig = (json: Metadata, taps: readonly number[]): QwenConfig => {
  const whole = decoderConfig(json)
  if (whole.architecture !== "qwen3")
    throw new Unsupported(`its text encoder is '${whole.architecture}'; this pipeline has a Qwen3`)
  const layers = Math.max(...taps)
  if (layers > whole.layers)
    throw new Unsupported(
      `its text encoder has ${whole.layers} layers, and states after ${layers} are read`,
    )
  const decoder = { ...whole, layers, tiedHead: true }
  return { decoder, layers: whole.layers, taps, width: whole.width * taps.length }
}

/** Hides what follows a token, and padding, in the scores of attention: `[1,1,G*S,S]`. */
const maskOf = (graph: GraphBuilder, ids: Value, length: Value, groups: number): Value => {
  const count = graph.node("Squeeze", [
    graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } }),
    graph.ints([0]),
  ])
  const places = graph.node("Range", [graph.ints(0), count, graph.ints(1)])
  const ends = graph.node("Min", [
    graph.node("Add", [graph.node("Unsqueeze", [places, graph.ints([1])]), graph.ints(1)]),
    length,
  ])
  const isSeen = graph.node("Less", [places, ends])
  const mask = graph.node("Where", [isSeen, graph.floats(0), graph.floats(-1e9)])
  const grouped = graph.concat(new Array<Value>(groups).fill(mask), 0)
  return graph.node("Unsqueeze", [grouped, graph.ints([0, 1])])
}

/**
 * States of a causal Qwen3 (arXiv 2505.09388). In: `input_ids [1,S]`, padded at the end, and `length
 * [1]`, the tokens that are not padding; padding sees them and not itself. Out: `states
 * [1,S,width]`.
 */
export const buildQwenEncoder = (
  building: EncoderBuilding,
  { decoder: config, layers, taps, width }: QwenConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph, file, precision } = building
  const names = folderNames(config.architecture, file)
  const ids = graph.input("input_ids", "int64", [1, "S"])
  const length = graph.input("length", "int64", [1])
  const mask = maskOf(graph, ids, length, config.heads / config.kvHeads)
  const table = { rows: config.vocabulary, columns: config.width }
  const weights = new DecoderWeights(file, names, { ...config, layers }, false)
  const decoder = { graph, config, weights, precision }
  const states = statesAfter(
    decoder,
    {
      x: lookup(building, `${names.embedding}.weight`, table, ids),
      positions: graph.ints([0]),
      attend: (heads) => groupedAttention(graph, config, turnedHeads(decoder, heads), mask),
      progress: (done) => progress(`layer ${done} of ${config.layers}`),
    },
    taps,
  )
  graph.output("states", graph.concat(states, 2), "float", [1, "S", width])
}
