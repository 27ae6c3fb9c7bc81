import type { EncoderBuilding } from "../../encoding/encoder-model.ts"
import { lookup, prefixOf, product } from "../../encoding/encoder-parts.ts"
import {
  clipDefaults,
  type TowerSizes,
  towerLayers,
  towerNorm,
  towerSizes,
} from "../../encoding/tower-layers.ts"
import type { GraphBuilder, Value } from "../../onnx/graph-builder.ts"
import { countOr, type Metadata } from "../../weights/gguf-metadata.ts"

/** Sizes of a CLIPTextModel, alone or with a projection of its pooled state. */
export interface ClipConfig extends TowerSizes {
  readonly vocabulary: number
  readonly positions: number
  readonly projection: number
}

export const clipConfig = (json: Metadata): ClipConfig => {
  const defaults = { ...clipDefaults, width: 512, heads: 8 }
  return {
    ...towerSizes(json, defaults),
    vocabulary: countOr(json, "vocab_size", 2 ** 24, 49_408),
    positions: countOr(json, "max_position_embeddings", 4096, 77),
    projection: countOr(json, "projection_dim", 65_536, 512),
  }
}

/** Hides from each token those behind it: `[S,S]`. */
const causalMask = (graph: GraphBuilder, ids: Value): { positions: Value; mask: Value } => {
  const shape = graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } })
  const count = graph.node("Squeeze", [shape, graph.ints([0])])
  const positions = graph.node("Range", [graph.ints(0), count, graph.ints(1)])
  const rows = graph.node("Unsqueeze", [positions, graph.ints([1])])
  const isBehind = graph.node("Less", [rows, positions])
  return {
    positions,
    mask: graph.node("Where", [isBehind, graph.floats(-1e9), graph.floats(0)]),
  }
}

/**
 * A text encoder of CLIP (Radford et al., arXiv 2103.00020), as diffusion models read it. In:
 * `input_ids [1,S]`, and `end [1]`, where the end token is. Out: `states [1,S,width]` behind the last
 * norm; `penultimate [1,S,width]`, the states before the last layer; `pooled [1,P]`, the normed state
 * of the end token, projected where the checkpoint has a projection.
 */
export const buildClipEncoder = (
  building: EncoderBuilding,
  config: ClipConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph, file } = building
  const { width, vocabulary, positions: places, layers, projection } = config
  const tower = prefixOf(file, "embeddings.token_embedding.weight", ["text_model.", ""])
  const ids = graph.input("input_ids", "int64", [1, "S"])
  const end = graph.input("end", "int64", [1])
  const { positions, mask } = causalMask(graph, ids)
  const rowsOf = (name: string, rows: number, indices: Value) =>
    lookup(building, `${tower}embeddings.${name}.weight`, { rows, columns: width }, indices)
  const x = graph.node("Add", [
    rowsOf("token_embedding", vocabulary, ids),
    rowsOf("position_embedding", places, positions),
  ])
  progress(`${layers} layers`)
  const of = (from: Value, first: number, count: number) =>
    towerLayers(building, `${tower}encoder`, from, { ...config, layers: count }, mask, first)
  const penultimate = of(x, 0, layers - 1)
  const last = of(penultimate, layers - 1, layers)
  const states = towerNorm(building, `${tower}final_layer_norm`, last, config)
  const ended = graph.node("Squeeze", [
    graph.node("Gather", [states, end], { attributes: { axis: 1 } }),
    graph.ints([1]),
  ])
  const isProjected = file.has("text_projection.weight")
  const pooled = isProjected
    ? product(building, "text_projection", ended, { rows: projection, columns: width })
    : ended
  graph.output("states", states, "float", [1, "S", width])
  graph.output("penultimate", penultimate, "float", [1, "S", width])
  graph.output("pooled", pooled, "float", [1, isProjected ? projection : width])
}
