import type { LowRankPair, PairShape } from "../architectures/adapter-file.ts"
import type { LayerMatrix } from "../architectures/tensor-names.ts"
import { type FoundGroup, kindOf, productScale, tileRanks } from "../onnx/adapter-inputs.ts"

/**
 * ONNX Runtime adds up sums of more ranks in blocks: of so many tiles, or of twice as many and more
 * where a thread has few rows of the product. How many threads take part depends on the company.
 */
export const blockTiles = 8

/** The ranks of one adapter in one kind of group: equally many tiles for each part that it has. */
export interface TileRun {
  /** First tile within the adapters that are side by side. */
  readonly first: number
  readonly count: number
}

/** The inputs of a group, `a [tiles, columns, 16]` and `b [tiles * 16, rows]`. */
export interface GroupTiles {
  readonly a: Float32Array
  readonly b: Float32Array
}

/** Matrix sizes of a group. */
export interface GroupSize extends FoundGroup {
  readonly columns: number
  /** Rows of each part. */
  readonly partRows: readonly number[]
  /** Their sum. */
  readonly rows: number
}

/** An adapter as the graph takes it. */
export interface TiledAdapter {
  readonly id: string
  /** By kind of group. */
  readonly runs: ReadonlyMap<string, { readonly tiles: number; readonly alignment: number }>
  /** In the order of the graph's groups. */
  readonly groups: readonly GroupTiles[]
  readonly bytes: number
}

/** Tiles of each part: a power of two, so that no sum crosses the border of a block as large. */
const tilesFor = (rank: number): number => 2 ** Math.ceil(Math.log2(Math.ceil(rank / tileRanks)))

interface KindLayout {
  readonly parts: readonly LayerMatrix[]
  readonly tilesOfPart: number
}

const layoutOf = (pairs: readonly PairShape[], parts: readonly LayerMatrix[]): KindLayout => {
  const own = pairs.filter(({ part }) => parts.includes(part))
  return {
    parts: parts.filter((part) => own.some((pair) => pair.part === part)),
    tilesOfPart: own.length ? tilesFor(Math.max(...own.map(({ rank }) => rank))) : 0,
  }
}

/** Writes a pair into its tiles. */
const place = (
  { a, b }: GroupTiles,
  { rank, a: down, b: up }: LowRankPair,
  firstTile: number,
  {
    columns,
    rows,
    offset,
  }: { readonly columns: number; readonly rows: number; readonly offset: number },
): void => {
  for (let r = 0; r < rank; r++) {
    const tile = firstTile + Math.floor(r / tileRanks)
    for (let c = 0; c < columns; c++)
      a[(tile * columns + c) * tileRanks + (r % tileRanks)] = down[r * columns + c]! / productScale
    const start = (firstTile * tileRanks + r) * rows + offset
    for (let row = 0; row < up.length / rank; row++)
      b[start + row] = up[row * rank + r]! / productScale
  }
}

/** How many groups of a kind are one input. */
const joinedGroups = (sizes: readonly GroupSize[], kind: string): number =>
  sizes.filter((size) => size.isJoined && kindOf(size) === kind).length

/**
 * Memory for the groups of a graph, with so many tiles for each kind. Groups whose layers are one input
 * lie one after the other.
 */
const emptyGroups = (
  sizes: readonly GroupSize[],
  tilesOf: (kind: string) => number,
): readonly GroupTiles[] => {
  const joined = new Map<string, { readonly all: GroupTiles; taken: number }>()
  return sizes.map((size) => {
    const kind = kindOf(size)
    const [aSize, bSize] = [size.columns * tileRanks, tileRanks * size.rows].map(
      (tile) => tile * tilesOf(kind),
    ) as [number, number]
    const arrays = (count: number) => ({
      a: new Float32Array(count * aSize),
      b: new Float32Array(count * bSize),
    })
    if (!size.isJoined) return arrays(1)
    const one = joined.get(kind) ?? { all: arrays(joinedGroups(sizes, kind)), taken: 0 }
    joined.set(kind, one)
    const at = one.taken++
    return {
      a: one.all.a.subarray(at * aSize, (at + 1) * aSize),
      b: one.all.b.subarray(at * bSize, (at + 1) * bSize),
    }
  })
}

/** The arrays of each input, with the axis before those of a group: how many groups are in it. */
export const inputArrays = (
  sizes: readonly GroupSize[],
  groups: readonly GroupTiles[],
): readonly (GroupTiles & { readonly size: GroupSize; readonly before: readonly number[] })[] => {
  const known = new Set<string>()
  return sizes.flatMap((size, index) => {
    const own = groups[index]!
    if (!size.isJoined) return [{ ...own, size, before: [] }]
    if (known.has(kindOf(size))) return []
    known.add(kindOf(size))
    const [a, b] = [new Float32Array(own.a.buffer), new Float32Array(own.b.buffer)]
    return [{ a, b, size, before: [joinedGroups(sizes, kindOf(size))] }]
  })
}

/** How an adapter is laid out for the groups of a graph. */
export interface TileLayout {
  readonly sizes: readonly GroupSize[]
  /** By kind of group. */
  readonly kinds: ReadonlyMap<string, KindLayout>
  /** Memory of its tiles. */
  readonly bytes: number
}

const tilesIn = ({ parts, tilesOfPart }: KindLayout): number => parts.length * tilesOfPart

/** Lays out an adapter by its shapes; no memory is taken for its values. */
export const tileLayout = (
  shapes: readonly PairShape[],
  sizes: readonly GroupSize[],
): TileLayout => {
  const kinds = new Map(sizes.map((size) => [kindOf(size), layoutOf(shapes, size.parts)]))
  const values = sizes.reduce(
    (sum, size) => sum + tilesIn(kinds.get(kindOf(size))!) * tileRanks * (size.columns + size.rows),
    0,
  )
  return { sizes, kinds, bytes: values * Float32Array.BYTES_PER_ELEMENT }
}

const fillGroup = (
  made: GroupTiles,
  pair: LowRankPair,
  { parts, columns, partRows, rows }: GroupSize,
  layout: KindLayout,
): void => {
  const offset = partRows.slice(0, parts.indexOf(pair.part)).reduce((sum, count) => sum + count, 0)
  const first = layout.parts.indexOf(pair.part) * layout.tilesOfPart
  place(made, pair, first, { columns, rows, offset })
}

/** Brings the pairs into their tiles, one after the other. */
export const tiled = (
  id: string,
  pairs: Iterable<LowRankPair>,
  { sizes, kinds, bytes }: TileLayout,
): TiledAdapter => {
  const groups = emptyGroups(sizes, (kind) => tilesIn(kinds.get(kind)!))
  for (const pair of pairs)
    for (const [index, size] of sizes.entries())
      if (size.layer === pair.layer && size.parts.includes(pair.part))
        fillGroup(groups[index]!, pair, size, kinds.get(kindOf(size))!)
  return {
    id,
    runs: new Map(
      [...kinds].map(([key, layout]) => [
        key,
        { tiles: tilesIn(layout), alignment: layout.tilesOfPart || 1 },
      ]),
    ),
    groups,
    bytes,
  }
}

/** Several adapters side by side. */
export interface AdapterSet {
  readonly ids: ReadonlySet<string>
  /** By kind of group: how many tiles there are, and which are whose. */
  readonly kinds: ReadonlyMap<
    string,
    { readonly tiles: number; readonly runs: ReadonlyMap<string, TileRun> }
  >
  readonly groups: readonly GroupTiles[]
}

/** Adapters of larger alignment come first, so that no tile is left empty. */
const runsOf = (adapters: readonly TiledAdapter[], key: string) => {
  const runs = new Map<string, TileRun>()
  const all = adapters.map(({ id, runs: own }) => ({ id, ...own.get(key)! }))
  let first = 0
  for (const { id, tiles: count } of all.sort((a, b) => b.alignment - a.alignment)) {
    runs.set(id, { first, count })
    first += count
  }
  return { tiles: first, runs }
}

/** Puts adapters side by side; one alone is taken as it is. */
export const sideBySide = (
  adapters: readonly TiledAdapter[],
  sizes: readonly GroupSize[],
): AdapterSet => {
  const kinds = new Map(sizes.map((size) => [kindOf(size), runsOf(adapters, kindOf(size))]))
  const [only] = adapters
  if (only && adapters.length === 1) return { ids: new Set([only.id]), kinds, groups: only.groups }
  const groups = emptyGroups(sizes, (kind) => kinds.get(kind)!.tiles)
  for (const { id, groups: own } of adapters)
    for (const [index, size] of sizes.entries()) {
      const { first } = kinds.get(kindOf(size))!.runs.get(id)!
      groups[index]!.a.set(own[index]!.a, first * size.columns * tileRanks)
      groups[index]!.b.set(own[index]!.b, first * tileRanks * size.rows)
    }
  return { ids: new Set(adapters.map(({ id }) => id)), kinds, groups }
}
