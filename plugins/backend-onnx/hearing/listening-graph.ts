import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { dense, layerNorm } from "../encoding/encoder-parts.ts"
import { encoderStates, epsilon, hidden } from "./hearing-graphs.ts"
import type { ListeningConfig } from "./listening-config.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const listeningGraphVersion = 1

/**
 * The graph of an encoder, whose states become what a decoder reads: the mean of each pair, through
 * a linear layer. In: `features [1, bins, 2 states]`, and how many `states [1]` are of sound; those of
 * silence behind it are hidden. Out: `rows [states / 2, width]`.
 */
export const buildListening = (building: EncoderBuilding, config: ListeningConfig): void => {
  const { graph } = building
  const { width, states, decoderWidth } = config
  graph.input("states", "int64", [1])
  const places = graph.node("Range", [graph.ints(0), graph.ints(states), graph.ints(1)])
  const isSound = graph.node("Less", [places, "states"])
  const mask = graph.node("Where", [isSound, graph.floats(0), graph.floats(hidden)])
  const all = encoderStates(building, "audio_tower", config, mask)
  const pairs = graph.node("Reshape", [all, graph.ints([states / 2, 2, width])])
  const means = graph.node("ReduceMean", [pairs], { attributes: { axes: [1], keepdims: 0 } })
  const normed = layerNorm(building, "audio_tower.layer_norm", means, { width, epsilon })
  const sizes = { rows: decoderWidth, columns: width }
  const batched = graph.node("Unsqueeze", [normed, graph.ints([0])])
  const rows = dense(building, "multi_modal_projector.linear", batched, sizes)
  const flat = graph.node("Squeeze", [rows, graph.ints([0])])
  graph.output("rows", flat, "float", [states / 2, decoderWidth])
}
