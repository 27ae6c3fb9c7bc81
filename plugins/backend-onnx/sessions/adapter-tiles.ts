import type { LowRankPair } from "../architectures/adapter-file.ts"
import type { LayerMatrix } from "../architectures/tensor-names.ts"
import { type AdapterGroup, kindOf, productScale, tileRanks } from "../onnx/adapter-inputs.ts"

/** ONNX Runtime adds up sums of more ranks in blocks of so many tiles. */
const blockTiles = 8

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
export interface GroupSize extends AdapterGroup {
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

/** Tiles of each part: a power of two, or whole blocks, so that no sum crosses a block's border. */
const tilesFor = (rank: number): number => {
  const tiles = Math.ceil(rank / tileRanks)
  return tiles > blockTiles
    ? Math.ceil(tiles / blockTiles) * blockTiles
    : 2 ** Math.ceil(Math.log2(tiles))
}

interface KindLayout {
  readonly parts: readonly LayerMatrix[]
  readonly tilesOfPart: number
}

const layoutOf = (pairs: readonly LowRankPair[], parts: readonly LayerMatrix[]): KindLayout => {
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

const groupTiles = (
  pairs: readonly LowRankPair[],
  { layer, parts, columns, partRows, rows }: GroupSize,
  layout: KindLayout,
): GroupTiles => {
  const tiles = layout.parts.length * layout.tilesOfPart
  const made = {
    a: new Float32Array(tiles * columns * tileRanks),
    b: new Float32Array(tiles * tileRanks * rows),
  }
  for (const pair of pairs) {
    if (pair.layer !== layer || !parts.includes(pair.part)) continue
    const offset = partRows
      .slice(0, parts.indexOf(pair.part))
      .reduce((sum, count) => sum + count, 0)
    const first = layout.parts.indexOf(pair.part) * layout.tilesOfPart
    place(made, pair, first, { columns, rows, offset })
  }
  return made
}

/** Lays out an adapter for the groups of a graph. */
export const tiled = (
  id: string,
  pairs: readonly LowRankPair[],
  sizes: readonly GroupSize[],
): TiledAdapter => {
  const layouts = new Map(sizes.map((size) => [kindOf(size), layoutOf(pairs, size.parts)]))
  const groups = sizes.map((size) => groupTiles(pairs, size, layouts.get(kindOf(size))!))
  return {
    id,
    runs: new Map(
      [...layouts].map(([key, { parts, tilesOfPart }]) => [
        key,
        { tiles: parts.length * tilesOfPart, alignment: Math.min(blockTiles, tilesOfPart || 1) },
      ]),
    ),
    groups,
    bytes: groups.reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0),
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
  const groups =
    only && adapters.length === 1
      ? only.groups
      : sizes.map((size, index) => {
          const { tiles, runs } = kinds.get(kindOf(size))!
          const [aTile, bTile] = [size.columns * tileRanks, tileRanks * size.rows]
          const made = { a: new Float32Array(tiles * aTile), b: new Float32Array(tiles * bTile) }
          for (const { id, groups: own } of adapters) {
            const { first } = runs.get(id)!
            made.a.set(own[index]!.a, first * aTile)
            made.b.set(own[index]!.b, first * bTile)
          }
          return made
        })
  return { ids: new Set(adapters.map(({ id }) => id)), kinds, groups }
}
