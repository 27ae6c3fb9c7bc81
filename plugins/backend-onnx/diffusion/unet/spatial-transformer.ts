import { layerNorm } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { groupNorm, mapOf, tokensOf } from "../graph/convolution.ts"
import { attention, linear, type PartBuilding } from "../graph/layers.ts"

export interface SpatialTransformer {
  readonly channels: number
  readonly heads: number
  readonly depth: number
  readonly groups: number
  readonly contextWidth: number
}

const attended = (
  building: PartBuilding,
  name: string,
  [x, seen]: readonly [x: Value, seen: Value],
  { channels, heads }: SpatialTransformer,
  seenWidth: number,
): Value => {
  const of = (part: string, from: Value, columns: number) =>
    linear(building, `${name}.${part}`, from, { rows: channels, columns })
  const [q, k, v] = [
    of("to_q", x, channels),
    of("to_k", seen, seenWidth),
    of("to_v", seen, seenWidth),
  ]
  return of("to_out.0", attention(building, [q, k, v], heads), channels)
}

/** A feed-forward whose hidden values are gated by GELU (Shazeer, arXiv 2002.05202). */
const gated = (building: PartBuilding, name: string, x: Value, width: number): Value => {
  const { graph } = building
  const inner = 4 * width
  const both = linear(building, `${name}.net.0.proj`, x, { rows: 2 * inner, columns: width })
  const halves = [graph.name("hidden"), graph.name("gate")]
  const [hidden, gate] = graph.nodeWith("Split", [both], halves, { attributes: { axis: -1 } })
  const active = graph.node("Mul", [hidden!, graph.fused("Gelu", [gate!])])
  return linear(building, `${name}.net.2`, active, { rows: width, columns: inner })
}

/**
 * Transformer layers over the positions of a map, which see each other and the context
 * `[1,T,contextWidth]` (Transformer2DModel of diffusers).
 */
export const spatialTransformer = (
  building: PartBuilding,
  name: string,
  map: Value,
  context: Value,
  sizes: SpatialTransformer,
): Value => {
  const { graph } = building
  const { channels, groups, depth, contextWidth } = sizes
  const square = { rows: channels, columns: channels }
  const normed = groupNorm(building, `${name}.norm`, map, { channels, groups, epsilon: 1e-6 })
  // convolutions of 1 x 1 in some checkpoints, which are the same
  let x = linear(building, `${name}.proj_in`, tokensOf(building, normed, channels), square)
  for (let layer = 0; layer < depth; layer++) {
    const block = `${name}.transformer_blocks.${layer}`
    const norm = (part: string) =>
      layerNorm(building, `${block}.${part}`, x, { width: channels, epsilon: 1e-5 })
    const plus = (output: Value) => graph.node("Add", [x, output])
    const own = norm("norm1")
    x = plus(attended(building, `${block}.attn1`, [own, own], sizes, channels))
    const asking = norm("norm2")
    x = plus(attended(building, `${block}.attn2`, [asking, context], sizes, contextWidth))
    x = plus(gated(building, `${block}.ff`, norm("norm3"), channels))
  }
  const out = linear(building, `${name}.proj_out`, x, square)
  return graph.node("Add", [mapOf(building, out, map), map])
}
