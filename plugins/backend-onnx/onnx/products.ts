import { type Matrix, stacked } from "../weights/matrix.ts"
import type { Building } from "./building.ts"
import type { Value } from "./graph-builder.ts"
import { ownPrecision } from "./linear.ts"

/** Where neighbours begin that are kept with the same precision. */
const groupStarts = (
  matrices: readonly Matrix[],
  precision: Building["precision"],
): readonly number[] => {
  if (precision !== "auto") return [0]
  const own = matrices.map(ownPrecision)
  return [...own.keys()].filter((index) => index === 0 || own[index] !== own[index - 1])
}

/**
 * The products of several matrices with the same input: one product for those that are kept with
 * the same precision. `product` is that of the matrices `from` to `to`, stacked.
 */
export const products = (
  { graph, precision }: Building,
  matrices: readonly Matrix[],
  product: (matrix: Matrix, from: number, to: number) => Value,
): readonly Value[] => {
  const starts = groupStarts(matrices, precision)
  return starts.flatMap((from, index) => {
    const to = starts[index + 1] ?? matrices.length
    const group = matrices.slice(from, to)
    const all = product(stacked(group), from, to)
    if (group.length === 1) return [all]
    const sizes = graph.ints(group.map(({ rows }) => rows))
    const parts = group.map(() => graph.name("part"))
    return graph.split(all, sizes, parts, -1)
  })
}

/** The gate's activation times `up`. */
export const gated = ({ graph, config }: Building, gate: Value, up: Value): Value => {
  // QuickGelu with alpha 1 is SiLU; FastGelu is GELU by its tanh approximation
  const activated =
    config.activation === "gelu"
      ? graph.fused("FastGelu", [gate])
      : graph.fused("QuickGelu", [gate], { alpha: { float: 1 } })
  return graph.node("Mul", [activated, up])
}
