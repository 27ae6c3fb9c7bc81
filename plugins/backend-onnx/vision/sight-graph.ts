import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { activated, dense } from "../encoding/encoder-parts.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { Damaged } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import { efficientNetFeatures } from "./efficientnet-graph.ts"
import { buildQwenGraph } from "./qwen-graph.ts"
import type { Connector, SightConfig, TiledSight } from "./sight-config.ts"
import { squareStates } from "./transformer-graph.ts"
import { normalized } from "./vision-graph.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const sightGraphVersion = 1

const own = "vision_model."

/** What stands before the end of a tensor's name. */
const prefixBefore = (file: TensorSource, end: string): string => {
  if (file.has(end)) return ""
  for (const name of file.names()) if (name.endsWith(end)) return name.slice(0, -end.length)
  throw new Damaged(`the tensor '${end}' is missing`)
}

const renamed = (file: TensorSource, full: (name: string) => string): TensorSource => ({
  path: file.path,
  names: () => file.names(),
  has: (name) => file.has(full(name)),
  tensor: (name) => file.tensor(full(name)),
  rows: (entry, first, count) => file.rows(entry, first, count),
  close: () => file.close(),
})

/** The tensors of tower and connector by their short names, wherever the file has them. */
const shortened = (file: TensorSource, probe: string): TensorSource => {
  const tower = prefixBefore(file, "embeddings.patch_embedding.weight")
  const part = prefixBefore(file, probe)
  const full = (name: string) =>
    name.startsWith(own) ? tower + name.slice(own.length) : part + name
  return renamed(file, full)
}

/** The tensors below a name that ends in `probe`, by their names within it. */
const within = (file: TensorSource, probe: string): TensorSource => {
  const prefix = prefixBefore(file, probe)
  return renamed(file, (name) => prefix + name)
}

const qwenProbe = "patch_embed.proj.weight"
const probes: Readonly<Record<Connector["type"], string>> = {
  shuffle: "connector.modality_projection.proj.weight",
  mlp: "multi_modal_projector.linear_1.weight",
}

/** The numbers of a vector that the projector of these tensors makes. Throws `Damaged`. */
export const projectedWidth = (file: TensorSource, config: SightConfig): number => {
  if (config.family === "qwen") return within(file, qwenProbe).tensor("merger.mlp.2.weight").rows
  const last = probes[config.connector.type].replace("linear_1", "linear_2")
  return within(file, last).tensor(last).rows
}

/**
 * Squares of `scale` x `scale` states become one that is as many times as wide: `[B,grid*grid,width]`
 * to `[B,tokens,width*scale*scale]`.
 */
const shuffled = (
  { graph }: EncoderBuilding,
  states: Value,
  { grid, width }: TiledSight["tower"],
  scale: number,
): Value => {
  const reshaped = (value: Value, shape: readonly number[]) =>
    graph.node("Reshape", [value, graph.ints(shape)])
  const turned = (value: Value) =>
    graph.node("Transpose", [value], { attributes: { perm: [0, 2, 1, 3] } })
  const side = grid / scale
  const rows = turned(reshaped(states, [-1, grid, side, width * scale]))
  const squares = turned(reshaped(rows, [-1, side, side, width * scale * scale]))
  return reshaped(squares, [-1, side * side, width * scale * scale])
}

const connected = (building: EncoderBuilding, config: TiledSight, states: Value): Value => {
  const { connector, tower, width } = config
  if (connector.type === "shuffle") {
    const { scale } = connector
    const wide = shuffled(building, states, tower, scale)
    const size = { rows: width, columns: tower.width * scale * scale }
    return dense(building, "connector.modality_projection.proj", wide, size)
  }
  const name = "multi_modal_projector.linear_"
  const { rows } = building.file.tensor(`${name}1.weight`)
  const hidden = dense(building, `${name}1`, states, { rows, columns: tower.width })
  const active = activated(building, connector.activation, hidden)
  return dense(building, `${name}2`, active, { rows: width, columns: rows })
}

/** The states of a tower, `[B,squares,width]`, and the tensors of its connector. */
const towerStates = (outer: EncoderBuilding, config: TiledSight) => {
  const { graph, file } = outer
  const { tower, connector, preprocessing } = config
  const pixels = normalized(outer, config)
  const probe = probes[connector.type]
  if (tower.family !== "efficientnet_lite") {
    const building = { ...outer, file: shortened(file, probe) }
    return { building, states: squareStates(building, tower, pixels, config.states) }
  }
  const own = { ...outer, file: within(file, "stem.weight") }
  const features = efficientNetFeatures(own, tower, preprocessing.width, pixels)
  const flat = graph.node("Reshape", [features, graph.ints([0, tower.width, tower.grid ** 2])])
  const states = graph.node("Transpose", [flat], { attributes: { perm: [0, 2, 1] } })
  return { building: { ...outer, file: within(file, probe) }, states }
}

/**
 * The graph by which a chat model sees. In: `pixels [B,edge,edge,3]`, bytes of red, green and blue.
 * Out: `vectors [B,tokens,width]`, which the decoder reads in place of embedded tokens.
 */
export const buildSightGraph = (outer: EncoderBuilding, config: SightConfig): void => {
  const { graph } = outer
  if (config.family === "qwen") {
    buildQwenGraph({ ...outer, file: within(outer.file, qwenProbe) }, config)
    return
  }
  const { preprocessing, tokens, width } = config
  graph.input("pixels", "uint8", ["B", preprocessing.height, preprocessing.width, 3])
  const { building, states } = towerStates(outer, config)
  const vectors = connected(building, config, states)
  graph.output("vectors", vectors, "float", ["B", tokens, width])
}
