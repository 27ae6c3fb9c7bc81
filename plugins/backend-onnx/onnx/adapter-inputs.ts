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

/** A group of a graph, and whether those of several layers are one input. */
export interface FoundGroup extends AdapterGroup {
  readonly isJoined: boolean
}

/** Names of the inputs of a group. */
export const adapterNames = (group: FoundGroup) => {
  const kind = kindOf(group)
  const stem = group.isJoined ? `lora.${kind}` : `lora.${group.layer}.${kind}`
  return { a: `${stem}.a`, b: `${stem}.b` }
}

/** One input for all groups of a kind. */
export const scalesName = (kind: string): string => `lora.${kind}.scales`

/** The axis of tiles of an input of several layers names the layers. */
const tilesAxis = (kind: string, layers: readonly number[]): string =>
  `T_${kind}@${layers.join(".")}`
const layersIn = (axis: number | string | undefined): readonly number[] =>
  String(axis).split("@")[1]!.split(".").map(Number)

/** Finds the groups of a graph by its inputs; those of one input follow each other. */
export const groupsIn = (
  inputs: readonly { readonly name: string; readonly shape: readonly (number | string)[] }[],
): readonly FoundGroup[] =>
  inputs.flatMap(({ name, shape }): readonly FoundGroup[] => {
    const [, layer, kind] = /^lora\.(?:(\d+)\.)?([a-z]\w*(?:\+\w+)*)\.a$/.exec(name) ?? []
    if (kind === undefined) return []
    const parts = kind.split("+") as LayerMatrix[]
    if (layer !== undefined) return [{ layer: Number(layer), parts, isJoined: false }]
    return layersIn(shape[1]).map((own) => ({ layer: own, parts, isJoined: true }))
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
  /** The group's place in `a` and `b`, where these are of several layers. */
  readonly index?: number
}

/** What a graph has of a kind of group. */
interface Kind extends Size {
  readonly layers: number[]
  readonly isJoined: boolean
}

const kindsOf = new WeakMap<GraphBuilder, Map<string, Kind>>()

/**
 * Names the inputs `a [T, columns, 16]`, `b [R, rows]` and `scales [B, 1, R]` of a group, with R = 16 T:
 * all adapters of a pass side by side, in tiles of ranks, and for each row a scale for each rank, zero
 * for the ranks of other rows' adapters. Where no row has an adapter R is 0 and `a` is `[1, columns,
 * 0]`, as a product can't have no tiles.
 * `isJoined`, for native products: `a` and `b` are those of all groups of the kind, with an axis of so
 * many before: to hand over hundreds of inputs takes as long as a step of a small model.
 */
export const adapterInputs = (
  graph: GraphBuilder,
  { layer, parts, rows, columns }: AdapterGroup & Size,
  isJoined: boolean,
): AdapterInputs => {
  const kinds = kindsOf.get(graph) ?? new Map<string, Kind>()
  kindsOf.set(graph, kinds)
  const name = kindOf({ parts })
  const kind = kinds.get(name) ?? { rows, columns, layers: [], isJoined }
  kinds.set(name, kind)
  const index = kind.layers.push(layer) - 1
  const scales = scalesName(name)
  return { ...adapterNames({ layer, parts, isJoined }), scales, ...(isJoined && { index }) }
}

/** Declares the inputs of all groups, when all layers are built. */
export const declareAdapters = (graph: GraphBuilder): void => {
  for (const [name, { layers, isJoined, rows, columns }] of kindsOf.get(graph) ?? []) {
    const parts = name.split("+") as LayerMatrix[]
    const declare = (layer: number, before: readonly number[], tiles: string) => {
      const { a, b } = adapterNames({ layer, parts, isJoined })
      graph.input(a, "float", [...before, tiles, columns, `W_${name}`])
      graph.input(b, "float", [...before, `R_${name}`, rows])
    }
    graph.input(scalesName(name), "float", ["B", 1, `R_${name}`])
    if (isJoined) declare(layers[0]!, [layers.length], tilesAxis(name, layers))
    else for (const layer of layers) declare(layer, [], `T_${name}`)
  }
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
