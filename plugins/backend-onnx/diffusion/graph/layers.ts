import type { EncoderBuilding } from "../../encoding/encoder-model.ts"
import { dense } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"

/** What the graph of a part of a pipeline is built of. */
export type PartBuilding = EncoderBuilding

export const linear = dense

/** SiLU, as QuickGelu with alpha 1. */
export const silu = ({ graph }: PartBuilding, x: Value): Value =>
  graph.fused("QuickGelu", [x], { alpha: { float: 1 } })

/**
 * Sinusoids of a number `[1]`, `[1,1,channels]`: cosines before sines, frequencies from 1 down to
 * 1/10,000 (Vaswani et al., arXiv 1706.03762).
 */
export const sinusoids = ({ graph }: PartBuilding, x: Value, channels: number): Value => {
  const half = channels / 2
  const frequencies = Array.from({ length: half }, (_, i) =>
    Math.exp((-Math.log(10_000) * i) / half),
  )
  const angles = graph.node("Mul", [
    graph.node("Reshape", [x, graph.ints([1, 1, 1])]),
    graph.floats(frequencies),
  ])
  return graph.concat([graph.node("Cos", [angles]), graph.node("Sin", [angles])], 2)
}

/** Two linear layers with SiLU between them: an embedding of `x [1,1,columns]`. */
export const embedded = (
  building: PartBuilding,
  name: string,
  x: Value,
  { columns, width }: { readonly columns: number; readonly width: number },
): Value => {
  const hidden = linear(building, `${name}.linear_1`, x, { rows: width, columns })
  const size = { rows: width, columns: width }
  return linear(building, `${name}.linear_2`, silu(building, hidden), size)
}

/**
 * Attention (Vaswani et al., arXiv 1706.03762) of all tokens `[1,S,width]` to keys and values
 * `[1,T,width]`, without a mask: the operator never has all scores in memory.
 */
export const attention = (
  { graph }: PartBuilding,
  [q, k, v]: readonly [q: Value, k: Value, v: Value],
  heads: number,
): Value => graph.fused("MultiHeadAttention", [q, k, v], { num_heads: heads })
