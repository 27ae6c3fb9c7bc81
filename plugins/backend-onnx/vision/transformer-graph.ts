import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { bidirectional, dense, plusBias, table, vector } from "../encoding/encoder-parts.ts"
import {
  type TowerSizes,
  towerFeedForward,
  towerLayers,
  towerNorm,
} from "../encoding/tower-layers.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { linear } from "../onnx/linear.ts"
import { matrixOf, rowsOf, vectorOf } from "../weights/matrix.ts"
import type { TransformerConfig, VisionConfig } from "./vision-config.ts"

const embeddings = "vision_model.embeddings"

/** The squares of the pictures as tokens, `[B, grid * grid, width]`. */
const patches = (
  building: EncoderBuilding,
  { patch, width }: TransformerConfig,
  pixels: Value,
): Value => {
  const { graph } = building
  const name = `${embeddings}.patch_embedding`
  const kernels = table(building, `${name}.weight`, width, 3, patch, patch)
  const squares = graph.node("Conv", [pixels, kernels], {
    attributes: { kernel_shape: [patch, patch], strides: [patch, patch] },
  })
  const tokens = graph.node(
    "Transpose",
    [graph.node("Reshape", [squares, graph.ints([0, 0, -1])])],
    {
      attributes: { perm: [0, 2, 1] },
    },
  )
  return plusBias(building, name, tokens, width)
}

const positions = (building: EncoderBuilding, rows: number, width: number): Value =>
  table(building, `${embeddings}.position_embedding.weight`, rows, width)

/** A token of its own before those of each picture: `[B, 1 + squares, width]`. */
const withClass = (building: EncoderBuilding, tokens: Value, width: number): Value => {
  const { graph } = building
  const batch = graph.node("Shape", [tokens], { attributes: { start: 0, end: 1 } })
  const shape = graph.concat([batch, graph.ints([1, width])], 0)
  const first = vector(building, `${embeddings}.class_embedding`, width)
  return graph.concat([graph.node("Expand", [first, shape]), tokens], 1)
}

const first = ({ graph }: EncoderBuilding, states: Value): Value =>
  graph.node("Gather", [states, graph.ints(0)], { attributes: { axis: 1 } })

/** CLIP: the state of a token of its own, projected. */
const clip = (
  building: EncoderBuilding,
  tower: TransformerConfig,
  tokens: Value,
  rows: number,
): Value => {
  const { graph } = building
  const { width, grid } = tower
  const x = graph.node("Add", [
    withClass(building, tokens, width),
    positions(building, grid * grid + 1, width),
  ])
  // the name is misspelt in the published files
  const before = towerNorm(building, "vision_model.pre_layrnorm", x, tower)
  const states = towerLayers(building, "vision_model.encoder", before, tower)
  const last = towerNorm(building, "vision_model.post_layernorm", first(building, states), tower)
  return dense(building, "visual_projection", last, { rows, columns: width })
}

/** Attention of a learned query over the states, then a feed-forward part: `[B, width]`. */
const attentionPool = (
  building: EncoderBuilding,
  states: Value,
  sizes: TowerSizes,
  mask?: Value,
): Value => {
  const { graph, file, precision } = building
  const { width } = sizes
  const head = "vision_model.head"
  const probe = vector(building, `${head}.probe`, width)
  const query = graph.node("Reshape", [probe, graph.ints([1, 1, width])])
  const matrix = matrixOf(file, `${head}.attention.in_proj_weight`, {
    rows: 3 * width,
    columns: width,
  })
  const biases = vectorOf(file, `${head}.attention.in_proj_bias`, 3 * width)
  const parts = [query, states, states].map((x, part) =>
    linear(graph, x, rowsOf(matrix, part * width, width), precision, {
      bias: biases.subarray(part * width, (part + 1) * width),
    }),
  )
  const attended = bidirectional(building, parts, sizes, mask)
  const square = { rows: width, columns: width }
  const pooled = dense(building, `${head}.attention.out_proj`, attended, square)
  const normed = towerNorm(building, `${head}.layernorm`, pooled, sizes)
  const fed = towerFeedForward(building, `${head}.mlp`, normed, sizes)
  return first(building, graph.node("Add", [pooled, fed]))
}

const siglip = (building: EncoderBuilding, tower: TransformerConfig, tokens: Value): Value => {
  const { width, grid } = tower
  const x = building.graph.node("Add", [tokens, positions(building, grid * grid, width)])
  const states = towerLayers(building, "vision_model.encoder", x, tower)
  const normed = towerNorm(building, "vision_model.post_layernorm", states, tower)
  return attentionPool(building, normed, tower)
}

/** Hides the squares from `counts [B]` on, `[B,1,1,most]`. */
const padding = ({ graph }: EncoderBuilding, most: number): Value => {
  const places = graph.node("Range", [graph.ints(0), graph.ints(most), graph.ints(1)])
  const real = graph.node("Less", [places, graph.node("Unsqueeze", ["counts", graph.ints([1])])])
  const hidden = graph.node("Where", [real, graph.floats(0), graph.floats(-1e9)])
  return graph.node("Unsqueeze", [hidden, graph.ints([1, 2])])
}

/**
 * SigLIP 2 with pictures of any shape (NaFlex): squares `pixels [B,most,patch*patch*3]` of which
 * `counts [B]` are real, with positions interpolated by `places [B,most,grid*grid]`. Returns
 * `[B,width]`.
 */
export const naflexTransformer = (
  building: EncoderBuilding,
  tower: TransformerConfig,
  most: number,
  squares: Value,
): Value => {
  const { graph } = building
  const { width, grid, patch } = tower
  const size = { rows: width, columns: 3 * patch * patch }
  const tokens = dense(building, `${embeddings}.patch_embedding`, squares, size)
  const spread = graph.node("MatMul", ["places", positions(building, grid * grid, width)])
  const mask = padding(building, most)
  const x = graph.node("Add", [tokens, spread])
  const states = towerLayers(building, "vision_model.encoder", x, tower, mask)
  const normed = towerNorm(building, "vision_model.post_layernorm", states, tower)
  return attentionPool(building, normed, tower, mask)
}

/**
 * The vision tower of CLIP (Radford et al., arXiv 2103.00020) or SigLIP (Zhai et al., arXiv
 * 2303.15343): pixels `[B,3,edge,edge]` to `[B,width]`.
 */
export const visionTransformer = (
  building: EncoderBuilding,
  tower: TransformerConfig,
  { width }: VisionConfig,
  pixels: Value,
): Value => {
  const tokens = patches(building, tower, pixels)
  return tower.family === "clip"
    ? clip(building, tower, tokens, width)
    : siglip(building, tower, tokens)
}

/** Which of a tower's states a decoder reads. */
export interface StatesRead {
  readonly layers: number
  /** Normalized as the tower's last states are. */
  readonly isNormed: boolean
  /** With that of CLIP's own token. */
  readonly keepsClass: boolean
}

/** The states of a picture's squares: pixels `[B,3,edge,edge]` to `[B,tokens,width]`. */
export const squareStates = (
  building: EncoderBuilding,
  tower: TransformerConfig,
  pixels: Value,
  { layers, isNormed, keepsClass }: StatesRead,
): Value => {
  const { graph } = building
  const { width, grid, family } = tower
  const [tokens, squares] = [patches(building, tower, pixels), grid * grid]
  const isClip = family === "clip"
  const placed = graph.node("Add", [
    isClip ? withClass(building, tokens, width) : tokens,
    positions(building, isClip ? squares + 1 : squares, width),
  ])
  const x = isClip ? towerNorm(building, "vision_model.pre_layrnorm", placed, tower) : placed
  const states = towerLayers(building, "vision_model.encoder", x, { ...tower, layers })
  const read = isNormed ? towerNorm(building, "vision_model.post_layernorm", states, tower) : states
  if (!isClip || keepsClass) return read
  const bounds = [graph.ints([1]), graph.ints([squares + 1]), graph.ints([1])]
  return graph.node("Slice", [read, ...bounds])
}
