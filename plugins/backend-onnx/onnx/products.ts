import { type Matrix, stacked } from "../weights/matrix.ts"
import type { Building } from "./building.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { type OwnFormat, ownFormat, type Precision } from "./linear.ts"
import { type ProductInput, productInput } from "./product-input.ts"

/** Where neighbours begin that are kept alike; `own`: what `auto` comes to. In 4 bits codes are apart. */
export const groupStarts = (
  precision: Precision,
  own: () => readonly OwnFormat[],
): readonly number[] => {
  if (precision !== "auto" && precision !== "int4") return [0]
  const kept = own().map((format) =>
    precision === "auto" || format instanceof Int8Array ? format : precision,
  )
  return [...kept.keys()].filter((index) => index === 0 || kept[index] !== kept[index - 1])
}

/** The product of the matrices `from` to `to`, which are `matrix`, stacked. */
export type Product = (matrix: Matrix, from: number, to: number) => Value

/** Neighbours and the product of all of them. */
interface Group {
  readonly group: readonly Matrix[]
  readonly all: Value
}

/** One product for neighbours that are kept with the same precision. */
const groupProducts = (
  { precision, graph }: Building,
  matrices: readonly Matrix[],
  product: Product,
): readonly Group[] => {
  const starts = groupStarts(precision, () =>
    matrices.map((matrix) => ownFormat(matrix.typeOf(0), graph.kernels)),
  )
  return starts.map((from, index) => {
    const to = starts[index + 1] ?? matrices.length
    const group = matrices.slice(from, to)
    return { group, all: product(stacked(group), from, to) }
  })
}

const splitProducts = (graph: GraphBuilder, groups: readonly Group[]): readonly Value[] =>
  groups.flatMap(({ group, all }) => {
    if (group.length === 1) return [all]
    const sizes = graph.ints(group.map(({ rows }) => rows))
    const parts = group.map(() => graph.name("part"))
    return graph.split(all, sizes, parts, -1)
  })

/** The products of several matrices with the same input. */
export interface Products {
  /** One for neighbours that are kept with the same precision. */
  readonly groups: readonly Value[]
  /** One for each matrix, by nodes that split the groups. */
  apart(): readonly Value[]
}

export const products = (
  building: Building,
  matrices: readonly Matrix[],
  product: Product,
): Products => {
  const groups = groupProducts(building, matrices, product)
  return {
    groups: groups.map(({ all }) => all),
    apart: () => splitProducts(building.graph, groups),
  }
}

/** Numbers of activations (kernels/native/gated-unit.h). */
const nativeActivations = { silu: 1, gelu: 2 } as const

/** The activation of the first half of a product, times the other half. */
const gatedByKernels = (graph: GraphBuilder, all: Value, activation: number): ProductInput =>
  productInput(
    () => graph.node("GatedUnit", [all], { attributes: { activation }, domain: "rakit" }),
    { x: all, inputs: [], attributes: { gate: activation } },
  )

/** The activation of the first product, times the second one, of matrices with the same input. */
export const gatedProducts = (
  building: Building,
  matrices: readonly [gate: Matrix, up: Matrix],
  product: Product,
): ProductInput => {
  const { graph, config } = building
  const groups = groupProducts(building, matrices, product)
  const [first, second] = groups
  if (graph.kernels && !second)
    return gatedByKernels(graph, first!.all, nativeActivations[config.activation])
  return productInput(() => {
    const [gate, up] = splitProducts(graph, groups)
    // QuickGelu with alpha 1 is SiLU; FastGelu is GELU by its tanh approximation
    const activated =
      config.activation === "gelu"
        ? graph.fused("FastGelu", [gate!])
        : graph.fused("QuickGelu", [gate!], { alpha: { float: 1 } })
    return graph.node("Mul", [activated, up!])
  })
}
