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

const shapes = new WeakMap<GraphBuilder, Map<string, Value>>()

/** Declares the scales of a kind of group once; returns the shape `[B, S, R]` of its products. */
const shapeOf = (graph: GraphBuilder, x: Value, kind: string): Value => {
  const known = shapes.get(graph) ?? new Map<string, Value>()
  shapes.set(graph, known)
  const name = scalesName(kind)
  const shape = known.get(name)
  if (shape) return shape
  graph.input(name, "float", ["B", 1, `R_${kind}`])
  const size = (value: Value, start: number, end: number) =>
    graph.node("Shape", [value], { attributes: { start, end } })
  const made = graph.concat([size(x, 0, 2), size(name, 2, 3)], 0)
  known.set(name, made)
  return made
}

/**
 * Adds what the adapters of the rows make of `x [B, S, columns]` to the product. All adapters of a
 * pass are inputs side by side, in tiles of ranks, and each row has a scale for each rank: zero for
 * the ranks of other rows' adapters.
 *
 * In: `a [T, columns, 16]`, `b [R, rows]` and `scales [B, 1, R]`, with R = 16 T; where no row has an
 * adapter R is 0 and `a` is `[1, columns, 0]`, as a product can't have no tiles.
 */
export const plusAdapters = (
  graph: GraphBuilder,
  x: Value,
  product: Value,
  { rows, columns, ...group }: AdapterGroup & Size,
): Value => {
  const { a, b } = adapterNames(group)
  const kind = kindOf(group)
  const shape = shapeOf(graph, x, kind)
  graph.input(a, "float", [`T_${kind}`, columns, `W_${kind}`])
  graph.input(b, "float", [`R_${kind}`, rows])
  const flat = graph.node("Reshape", [x, graph.ints([-1, columns])])
  const times = (left: Value, right: Value) => graph.matmul(left, right, { alpha: productScale })
  const tiles = graph.node("Transpose", [times(flat, a)], {
    attributes: { perm: [1, 0, 2] },
  })
  const ranks = graph.node("Reshape", [tiles, shape], { attributes: { allowzero: 1 } })
  const scaled = graph.node("Mul", [ranks, scalesName(kind)])
  return graph.node("Add", [product, times(scaled, b)])
}
