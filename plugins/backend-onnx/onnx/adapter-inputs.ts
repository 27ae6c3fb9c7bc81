import type { LayerMatrix } from "../architectures/tensor-names.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"

/**
 * Ranks of a tile. ONNX Runtime splits long sums by the shape of the whole product; a product of 16
 * columns is always split alike, so that a row gets the same bits whatever adapters are beside it.
 */
export const tileRanks = 16

/**
 * ONNX Runtime has another kernel for a product of a single row, which rounds differently, but not
 * where the product is multiplied by something. Inputs are divided by it, which is exact.
 */
export const productScale = 2

/** Increment it whenever graphs with adapters must be built again. */
export const adapterGraphVersion = 2

/** Matrices of a layer that are one product in the graph. */
export interface AdapterGroup {
  readonly layer: number
  readonly parts: readonly LayerMatrix[]
}

/** What the groups of the same parts have in common, in all layers. */
export const kindOf = ({ parts }: Pick<AdapterGroup, "parts">): string => parts.join("+")

/** Names of the inputs of a group. */
export const adapterNames = (group: AdapterGroup) => {
  const stem = `lora.${group.layer}.${kindOf(group)}`
  return { a: `${stem}.a`, b: `${stem}.b` }
}

/** One input for all groups of a kind. */
export const scalesName = (kind: string): string => `lora.${kind}.scales`

/** Finds the groups of a graph by the names of its inputs. */
export const groupsIn = (inputs: readonly { readonly name: string }[]): readonly AdapterGroup[] =>
  inputs.flatMap(({ name }) => {
    const found = /^lora\.(\d+)\.([\w+]+)\.a$/.exec(name)
    return found ? [{ layer: Number(found[1]), parts: found[2]!.split("+") as LayerMatrix[] }] : []
  })

interface Size {
  readonly rows: number
  readonly columns: number
}

/** The inputs of a group's adapters. */
export interface AdapterInputs {
  readonly a: Value
  readonly b: Value
  readonly scales: Value
}

const declared = new WeakMap<GraphBuilder, Set<Value>>()

/** Declares the scales of a kind of group once. */
const declareScales = (graph: GraphBuilder, kind: string): Value => {
  const known = declared.get(graph) ?? new Set<Value>()
  declared.set(graph, known)
  const name = scalesName(kind)
  if (!known.has(name)) graph.input(name, "float", ["B", 1, `R_${kind}`])
  known.add(name)
  return name
}

/**
 * Declares `a [T, columns, 16]`, `b [R, rows]` and `scales [B, 1, R]`, with R = 16 T: all adapters of a
 * pass side by side, in tiles of ranks, and for each row a scale for each rank, zero for the ranks of
 * other rows' adapters. Where no row has an adapter R is 0 and `a` is `[1, columns, 0]`, as a product
 * can't have no tiles.
 */
export const declareAdapters = (
  graph: GraphBuilder,
  { rows, columns, ...group }: AdapterGroup & Size,
): AdapterInputs => {
  const { a, b } = adapterNames(group)
  const kind = kindOf(group)
  graph.input(a, "float", [`T_${kind}`, columns, `W_${kind}`])
  graph.input(b, "float", [`R_${kind}`, rows])
  return { a, b, scales: declareScales(graph, kind) }
}

const shapes = new WeakMap<GraphBuilder, Map<string, Value>>()

/** The shape `[B, S, R]` of products with the first matrix of the adapters of this kind. */
const shapeOf = (graph: GraphBuilder, x: Value, scales: Value): Value => {
  const known = shapes.get(graph) ?? new Map<string, Value>()
  shapes.set(graph, known)
  const shape = known.get(scales)
  if (shape) return shape
  const size = (value: Value, start: number, end: number) =>
    graph.node("Shape", [value], { attributes: { start, end } })
  const made = graph.concat([size(x, 0, 2), size(scales, 2, 3)], 0)
  known.set(scales, made)
  return made
}

/**
 * Adds what the adapters of the rows make of `x [B, S, columns]` to the product, by nodes; a native
 * product does it itself.
 */
export const plusAdapters = (
  graph: GraphBuilder,
  x: Value,
  product: Value,
  columns: number,
  { a, b, scales }: AdapterInputs,
): Value => {
  const shape = shapeOf(graph, x, scales)
  const flat = graph.node("Reshape", [x, graph.ints([-1, columns])])
  const times = (left: Value, right: Value) => graph.matmul(left, right, { alpha: productScale })
  const tiles = graph.node("Transpose", [times(flat, a)], {
    attributes: { perm: [1, 0, 2] },
  })
  const ranks = graph.node("Reshape", [tiles, shape], { attributes: { allowzero: 1 } })
  const scaled = graph.node("Mul", [ranks, scales])
  return graph.node("Add", [product, times(scaled, b)])
}
