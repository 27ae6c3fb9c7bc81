import { vector } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { attention, linear, type PartBuilding } from "../graph/layers.ts"

/** Sizes of an IrisTransformer. */
export interface IrisConfig {
  /** Edge of a patch in pixels. */
  readonly patch: number
  /** Numbers of a patch. */
  readonly channels: number
  readonly bottleneck: number
  readonly width: number
  readonly heads: number
  readonly blocks: number
  /** Every so many blocks, from the first on, one attends to the text. */
  readonly crossEvery: number
  readonly refiners: number
  /** Width of a feed-forward inside. */
  readonly inner: number
  readonly modulation: number
  readonly textWidth: number
  readonly maxReferences: number
  /** Edge of the sketch's grid, and numbers of each of its tokens. */
  readonly sketchGrid: number
  readonly sketchValues: number
  readonly sketchHidden: number
  readonly slots: number
  readonly readers: number
  readonly frequencies: number
  readonly theta: number
}

export interface Rotary {
  readonly cos: Value
  readonly sin: Value
}

/** Layer normalization without a bias; the scale is that of `name`, or a value. */
export const norm = ({ graph }: PartBuilding, x: Value, scale: Value, shift?: Value): Value =>
  graph.node("LayerNormalization", [x, scale, ...(shift === undefined ? [] : [shift])], {
    attributes: { axis: -1, epsilon: { float: 1e-6 } },
  })

export const namedNorm = (building: PartBuilding, name: string, x: Value, width: number): Value =>
  norm(building, x, vector(building, `${name}.weight`, width))

/**
 * Rotates `x [1,S,width]`. A head has its pairs by rows in its first half and those by columns in
 * the other, each pair a quarter of a head apart; the operator has the two of a pair half a head
 * apart.
 */
const rotated = (
  { graph }: PartBuilding,
  x: Value,
  { cos, sin }: Rotary,
  { width, heads }: IrisConfig,
): Value => {
  const quarter = width / heads / 4
  const apart = graph.node("Reshape", [x, graph.ints([0, 0, heads, 2, 2, quarter])])
  const swapped = graph.node("Transpose", [apart], { attributes: { perm: [0, 1, 2, 4, 3, 5] } })
  const flat = graph.node("Reshape", [swapped, graph.ints([0, 0, width])])
  return graph.fused("RotaryEmbedding", [flat, graph.ints([0]), cos, sin], { num_heads: heads })
}

/** Attention with normalized queries and keys: of `x` to itself, or to `context`. */
export const attended = (
  building: PartBuilding,
  name: string,
  x: Value,
  config: IrisConfig,
  { context = x, rotary }: { readonly context?: Value; readonly rotary?: Rotary } = {},
): Value => {
  const { graph } = building
  const { width, heads } = config
  const square = { rows: width, columns: width }
  const normed = (part: string, of: Value) => {
    const all = linear(building, `${name}.to_${part}`, of, square)
    const apart = graph.node("Reshape", [all, graph.ints([0, 0, heads, width / heads])])
    const scaled = namedNorm(building, `${name}.norm_${part}`, apart, width / heads)
    const flat = graph.node("Reshape", [scaled, graph.ints([0, 0, width])])
    return rotary ? rotated(building, flat, rotary, config) : flat
  }
  const values = linear(building, `${name}.to_v`, context, square)
  const sum = attention(building, [normed("q", x), normed("k", context), values], heads)
  return linear(building, `${name}.to_out.0`, sum, square)
}

export const feedForward = (
  building: PartBuilding,
  name: string,
  x: Value,
  { width, inner }: IrisConfig,
): Value => {
  const hidden = linear(building, `${name}.net.0.proj`, x, { rows: inner, columns: width })
  const active = building.graph.fused("FastGelu", [hidden])
  return linear(building, `${name}.net.2`, active, { rows: width, columns: inner })
}
