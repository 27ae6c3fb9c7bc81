import { withAdapterFile } from "../architectures/adapter-file.ts"
import type { DecoderConfig } from "../architectures/decoder-config.ts"
import { adapterNames, groupsIn, kindOf, scalesName, tileRanks } from "../onnx/adapter-inputs.ts"
import { floats, type Port } from "../onnx/onnx-session.ts"
import { type AdapterSpec, checkAdapterMemory, groupSizes } from "./adapter-memory.ts"
import {
  type AdapterSet,
  blockTiles,
  type GroupSize,
  inputArrays,
  sideBySide,
  type TiledAdapter,
  tiled,
  tileLayout,
} from "./adapter-tiles.ts"
import type { AdapterChoice } from "./decoder.ts"

export type Feeds = Readonly<Record<string, ReturnType<typeof floats>>>

interface OpenSet {
  readonly set: AdapterSet
  readonly weights: Feeds
  readonly bytes: number
}

// a set with adapters that are not used any more costs time at every pass; making one, too
const passesBeforeShrinking = 64

const orZeros = (values: Float32Array, length: number): Float32Array =>
  values.length ? values : new Float32Array(length)

/**
 * The adapters of a decoder, as inputs of its passes. What several rows need is put side by side
 * once, and kept until a pass needs others.
 */
export class AdapterFeeds {
  private readonly sizes: readonly GroupSize[]
  private readonly adapters: readonly TiledAdapter[]
  private readonly none: OpenSet
  private readonly single: ReadonlyMap<string, OpenSet>
  private combined: OpenSet | undefined
  private unneeded = 0
  private readonly leastTiles: number

  private constructor(
    sizes: readonly GroupSize[],
    adapters: readonly TiledAdapter[],
    leastTiles: number,
  ) {
    this.leastTiles = leastTiles
    this.sizes = sizes
    this.adapters = adapters
    this.none = this.openSet([])
    this.single = new Map(adapters.map((one) => [one.id, this.openSet([one])]))
  }

  /**
   * Reads the adapters; `inputs` are those of the graph, none of which is empty with `leastTiles`: 1.
   * Throws `ModelFileError`, also when they could take more than `maxBytes`.
   */
  static open(
    inputs: readonly Port[],
    config: DecoderConfig,
    specs: readonly AdapterSpec[],
    { maxBytes, leastTiles = 0 }: { readonly maxBytes: number; readonly leastTiles?: 0 | 1 },
  ): AdapterFeeds {
    const sizes = groupSizes(groupsIn(inputs), config)
    checkAdapterMemory(specs, config, sizes, maxBytes)
    const adapters = specs.map(({ id, path }) =>
      withAdapterFile(path, config, ({ shapes, pairs }) =>
        tiled(id, pairs(), tileLayout(shapes, sizes)),
      ),
    )
    return new AdapterFeeds(sizes, adapters, leastTiles)
  }

  /** Memory that the adapters take now. */
  get bytes(): number {
    const all = [...this.single.values(), ...(this.combined ? [this.combined] : [])]
    return all.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Adapters whose sums ONNX Runtime may split by the company of a row; native products split none. */
  get splitByCompany(): readonly string[] {
    const byNodes = this.sizes.filter(({ isJoined }) => !isJoined).map(kindOf)
    return this.adapters
      .filter(({ runs }) => byNodes.some((kind) => runs.get(kind)!.alignment > blockTiles))
      .map(({ id }) => id)
  }

  private openSet(adapters: readonly TiledAdapter[]): OpenSet {
    const set = sideBySide(adapters, this.sizes)
    const weights: Record<string, ReturnType<typeof floats>> = {}
    let bytes = 0
    const least = this.leastTiles * tileRanks
    for (const { size, a, b, before } of inputArrays(this.sizes, set.groups)) {
      const names = adapterNames(size)
      const [down, up] = [orZeros(a, least * size.columns), orZeros(b, least * size.rows)]
      const tiles = down.length / (size.columns * tileRanks * (before[0] ?? 1))
      const shape = tiles ? [tiles, size.columns, tileRanks] : [1, size.columns, 0]
      weights[names.a] = floats(down, [...before, ...shape])
      weights[names.b] = floats(up, [...before, tiles * tileRanks, size.rows])
      bytes += down.byteLength + up.byteLength
    }
    return { set, weights, bytes }
  }

  private setFor(needed: ReadonlySet<string>): OpenSet {
    const [first] = needed
    if (first === undefined) return this.none
    if (needed.size === 1) return this.single.get(first)!
    const { combined } = this
    const isEnough = combined && [...needed].every((id) => combined.set.ids.has(id))
    this.unneeded = isEnough && combined.set.ids.size > needed.size ? this.unneeded + 1 : 0
    if (isEnough && this.unneeded < passesBeforeShrinking) return combined
    this.unneeded = 0
    // its memory goes before that of the next
    this.combined = undefined
    this.combined = this.openSet(this.adapters.filter(({ id }) => needed.has(id)))
    return this.combined
  }

  /** Whether a later pass may take the same weights. */
  isCurrent(weights: Feeds): boolean {
    const all = [this.none, ...this.single.values(), this.combined]
    return all.some((one) => one?.weights === weights)
  }

  /** The inputs of a pass over rows with these adapters. */
  forRows(rows: readonly (AdapterChoice | undefined)[]): {
    readonly weights: Feeds
    readonly scales: Feeds
  } {
    const { set, weights } = this.setFor(
      new Set(rows.flatMap((choice) => (choice ? [choice.id] : []))),
    )
    const all: Record<string, ReturnType<typeof floats>> = {}
    for (const [kind, { tiles, runs }] of set.kinds) {
      const ranks = Math.max(tiles, this.leastTiles) * tileRanks
      const scales = new Float32Array(rows.length * ranks)
      for (const [row, choice] of rows.entries()) {
        const run = choice && runs.get(choice.id)
        if (!run) continue
        const start = row * ranks + run.first * tileRanks
        scales.fill(choice.strength, start, start + run.count * tileRanks)
      }
      all[scalesName(kind)] = floats(scales, [rows.length, 1, ranks])
    }
    return { weights, scales: all }
  }
}
