import { vector } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { attention, linear, type PartBuilding, silu } from "../graph/layers.ts"

/** Sizes of attention: `width` is that of all heads together. */
export interface Heads {
  readonly width: number
  readonly heads: number
}

/** Rotary tables `[S, headSize / 2]` of all tokens. */
export interface Rotary {
  readonly cos: Value
  readonly sin: Value
}

/**
 * Shifts, scales and gates of a block, `[width]` each, as one linear layer makes them of the
 * embedded timestep `[1,1,width]`.
 */
export const modulation = (
  building: PartBuilding,
  name: string,
  embedded: Value,
  width: number,
  count: number,
): readonly Value[] => {
  const { graph } = building
  const all = linear(building, name, silu(building, embedded), {
    rows: width * count,
    columns: width,
  })
  const parts = Array.from({ length: count }, () => graph.name("mod"))
  const flat = graph.node("Reshape", [all, graph.ints([-1])])
  return graph.nodeWith("Split", [flat], parts, { attributes: { axis: 0 } })
}

/** Layer normalization of `x [1,S,width]` whose scale, less one, and shift are values. */
export const modulated = (
  { graph }: PartBuilding,
  x: Value,
  { shift, scale }: { readonly shift: Value; readonly scale: Value },
): Value =>
  graph.node("LayerNormalization", [x, graph.node("Add", [scale, graph.floats(1)]), shift], {
    attributes: { axis: -1, epsilon: { float: 1e-6 } },
  })

/** `x` plus a part's output times its gate. */
export const gatedSum = ({ graph }: PartBuilding, x: Value, gate: Value, output: Value): Value =>
  graph.node("Add", [x, graph.node("Mul", [gate, output])])

/** The last norm and the projection to what a token predicts. */
export const projected = (
  building: PartBuilding,
  x: Value,
  embedded: Value,
  { width, outputs }: { readonly width: number; readonly outputs: number },
): Value => {
  const [scale, shift] = modulation(building, "norm_out.linear", embedded, width, 2)
  const normed = modulated(building, x, { shift: shift!, scale: scale! })
  return linear(building, "proj_out", normed, { rows: outputs, columns: width })
}

/** Root mean square norm of each head, where the checkpoint has one of this name. */
const headNorm = (building: PartBuilding, name: string, x: Value, { width, heads }: Heads) => {
  const { graph, file } = building
  if (!file.has(`${name}.weight`)) return x
  const size = width / heads
  const apart = graph.node("Reshape", [x, graph.ints([0, 0, heads, size])])
  const normed = graph.node(
    "SimplifiedLayerNormalization",
    [apart, vector(building, `${name}.weight`, size)],
    { attributes: { axis: -1, epsilon: { float: 1e-6 }, stash_type: 1 } },
  )
  return graph.node("Reshape", [normed, graph.ints([0, 0, width])])
}

/** Queries, keys and values of a stream of tokens, `[1,S,width]` each, before rotation. */
export type Triple = readonly [queries: Value, keys: Value, values: Value]

/** The norms of queries and keys of heads, by the names of their tensors. */
export const headNormed = (
  building: PartBuilding,
  [q, k, v]: Triple,
  [queries, keys]: readonly [string, string],
  heads: Heads,
): Triple => [headNorm(building, queries, q, heads), headNorm(building, keys, k, heads), v]

/** Projections of `x` by three layers, with the norms of queries and keys. */
export const triple = (
  building: PartBuilding,
  names: readonly [q: string, k: string, v: string],
  norms: readonly [q: string, k: string],
  x: Value,
  heads: Heads,
): Triple => {
  const [q, k, v] = names.map((name) =>
    linear(building, name, x, { rows: heads.width, columns: heads.width }),
  )
  return headNormed(building, [q!, k!, v!], norms, heads)
}

/** Joins the tokens of two streams, the first before the second. */
export const joined = ({ graph }: PartBuilding, first: Triple, second: Triple): Triple => {
  const [q, k, v] = first.map((value, index) => graph.concat([value, second[index]!], 1))
  return [q!, k!, v!]
}

const rotated = ({ graph }: PartBuilding, x: Value, { cos, sin }: Rotary, { heads }: Heads) =>
  graph.fused("RotaryEmbedding", [x, graph.ints([0]), cos, sin], {
    num_heads: heads,
    interleaved: 1,
  })

/** Attention of all tokens among each other, `[1,S,width]`. */
export const attended = (
  building: PartBuilding,
  [q, k, v]: Triple,
  heads: Heads,
  rotary?: Rotary,
): Value => {
  const turned = (x: Value) => (rotary ? rotated(building, x, rotary, heads) : x)
  return attention(building, [turned(q), turned(k), v], heads.heads)
}

/** The number of tokens of `x [1,S,width]`, as `[1]`. */
export const tokensOf = ({ graph }: PartBuilding, x: Value): Value =>
  graph.node("Shape", [x], { attributes: { start: 1, end: 2 } })

/** Divides tokens into the first ones, as many as `count`, and the rest. */
export const divided = (
  { graph }: PartBuilding,
  x: Value,
  count: Value,
): readonly [Value, Value] => {
  const slice = (from: Value, to: Value) => graph.node("Slice", [x, from, to, graph.ints([1])])
  return [slice(graph.ints([0]), count), slice(count, graph.ints([2 ** 31 - 1]))]
}

/** A feed-forward with GELU by its tanh approximation, four times as wide inside by default. */
export const feedForward = (
  building: PartBuilding,
  name: string,
  x: Value,
  width: number,
): Value => {
  const inner = 4 * width
  const hidden = linear(building, `${name}.net.0.proj`, x, { rows: inner, columns: width })
  const active = building.graph.fused("FastGelu", [hidden])
  return linear(building, `${name}.net.2`, active, { rows: width, columns: inner })
}
