import { floatOfHalf } from "../half-floats.ts"
import { BestChunks, Largest, type ScoredChunk } from "./best.ts"
import { columnBytes, type FirstPass } from "./device/protocol.ts"
import { Filter, type PackedRows, product, type ScanQuery, unpack } from "./packed-rows.ts"
import type { Layout, Slabs } from "./slabs.ts"

/**
 * Writes halves as int8 at `first`. Returns their scale, and the norm of what rounding took.
 */
const quantize = (halves: Uint16Array, into: Int8Array, first: number) => {
  // the bits of halves without their sign are in the order of the numbers
  let largest = 0
  for (let i = 0; i < halves.length; i++) {
    const bits = halves[i]! & 0x7fff
    if (bits > largest) largest = bits
  }
  const scale = Math.fround(largest > 0 ? floatOfHalf[largest]! / 127 : 1)
  let squares = 0
  for (let i = 0; i < halves.length; i++) {
    const value = floatOfHalf[halves[i]!]!
    const whole = Math.round(value / scale)
    into[first + i] = whole
    const error = value - whole * scale
    squares += error * error
  }
  return { scale, lost: Math.sqrt(squares) }
}

interface IndexedDocument {
  readonly no: number
  readonly expiresMs: number
}

/** Room for rounding in sums of floats. */
const slack = 1e-5

/**
 * The vectors of one tenant in one space. A search multiplies all rows as int8 first. The norm of
 * what rounding took from a row bounds by how much its product can be wrong (Cauchy-Schwarz), so
 * only rows that may belong to the best are multiplied again as halves, and the result is exact.
 */
export class RowIndex {
  private readonly memory: Slabs
  readonly layout: Layout
  /** Counts them: rows that a device named before one may be others now. */
  changes = 0
  private readonly slabs: number[] = []
  /** Slabs, by their place among those of the index. */
  private readonly changed = new Set<number>()
  private rows = 0
  /** By ordinal, which rows have; removed ones leave a hole, which a later one fills. */
  private readonly documents: (IndexedDocument | undefined)[] = []
  private readonly holes: number[] = []
  private readonly ordinals = new Map<number, number>()

  constructor(memory: Slabs, layout: Layout) {
    this.memory = memory
    this.layout = layout
  }

  add(packed: PackedRows): void {
    const { document, expiresMs } = packed
    const ordinal = this.ordinals.get(document) ?? this.holes.pop() ?? this.documents.length
    this.documents[ordinal] ??= { no: document, expiresMs }
    this.ordinals.set(document, ordinal)
    for (const { chunk, halves } of unpack(packed, this.layout.dimensions))
      this.append(ordinal, chunk, halves)
  }

  private slabOf(row: number): number {
    return this.slabs[Math.floor(row / this.layout.rows)]!
  }

  private append(ordinal: number, chunk: number, halves: Uint16Array): void {
    const { memory, layout } = this
    const at = this.rows % layout.rows
    if (at === 0) this.slabs.push(memory.take())
    const slab = this.slabs.at(-1)!
    memory.uint16.set(halves, (slab + layout.halves) / 2 + at * layout.dimensions)
    const { scale, lost } = quantize(halves, memory.int8, slab + at * layout.stride)
    const column = slab / 4 + at
    memory.float32[column + layout.scales / 4] = scale
    memory.float32[column + layout.errors / 4] = lost
    memory.int32[column + layout.documents / 4] = ordinal
    memory.int32[column + layout.chunks / 4] = chunk
    this.changed.add(this.slabs.length - 1)
    this.changes++
    this.rows++
  }

  /** The last row takes the place of a removed one. */
  remove(documents: readonly number[]): void {
    const removed = new Set<number>()
    for (const document of documents) {
      const ordinal = this.ordinals.get(document)
      if (ordinal === undefined) continue
      this.ordinals.delete(document)
      this.documents[ordinal] = undefined
      removed.add(ordinal)
    }
    for (let row = this.rows - 1; row >= 0; row--)
      if (removed.has(this.ordinalOf(row))) this.removeRow(row)
    // only now does no row have them
    for (const ordinal of removed) this.holes.push(ordinal)
  }

  private removeRow(row: number): void {
    const { memory, layout } = this
    const last = this.rows - 1
    const [to, from] = [this.slabOf(row), this.slabOf(last)]
    const [toRow, fromRow] = [row % layout.rows, last % layout.rows]
    const copy = (column: number, bytes: number) =>
      memory.int8.copyWithin(
        to + column + toRow * bytes,
        from + column + fromRow * bytes,
        from + column + (fromRow + 1) * bytes,
      )
    copy(0, layout.stride)
    copy(layout.halves, 2 * layout.dimensions)
    for (const column of [layout.scales, layout.errors, layout.documents, layout.chunks])
      copy(column, 4)
    this.changed.add(Math.floor(row / layout.rows))
    this.changes++
    this.rows--
    if (fromRow === 0) memory.give(this.slabs.pop()!)
  }

  private ordinalOf(row: number): number {
    const column = this.slabOf(row) / 4 + (row % this.layout.rows)
    return this.memory.int32[column + this.layout.documents / 4]!
  }

  search(query: ScanQuery): readonly ScoredChunk[] {
    if (query.limit < 1) return []
    const { rows, mosts, least } = this.candidates(query)
    const best = new BestChunks(query.limit)
    for (let i = 0; i < rows.length; i++)
      if (mosts[i]! >= least) best.offer(this.scored(rows[i]!, query.vector))
    return best.hits
  }

  private scored(row: number, query: Float32Array): ScoredChunk {
    const { memory, layout } = this
    const slab = this.slabOf(row)
    const at = row % layout.rows
    const ordinal = memory.int32[(slab + layout.documents) / 4 + at]!
    return {
      document: this.documents[ordinal]!.no,
      chunk: memory.int32[(slab + layout.chunks) / 4 + at]!,
      score: product(query, memory.uint16, (slab + layout.halves) / 2 + at * layout.dimensions),
    }
  }

  /** Rows whose product may be among the best, its bound, and what one of the best has at least. */
  private candidates({ vector, limit, nowMs, ranges }: ScanQuery) {
    const { memory, layout } = this
    const filter = new Filter(ranges)
    const isHidden = this.documents.map((known) => !known || known.expiresMs <= nowMs)
    const { scale, lost } = memory.setQuery(vector, layout.stride)
    const norm = Math.hypot(...vector)
    const best = new Largest(limit)
    const rows: number[] = []
    const mosts: number[] = []
    for (const [index, slab] of this.slabs.entries()) {
      const first = index * layout.rows
      const count = Math.min(layout.rows, this.rows - first)
      const products = memory.products(slab, count, layout)
      const errors = (slab + layout.errors) / 4
      const ordinals = (slab + layout.documents) / 4
      const chunks = (slab + layout.chunks) / 4
      for (let at = 0; at < count; at++) {
        const estimate = products[at]! * scale
        const error = norm * memory.float32[errors + at]! + lost * 1.01 + slack
        if (estimate + error < best.least) continue
        const ordinal = memory.int32[ordinals + at]!
        if (isHidden[ordinal]) continue
        if (ranges && !filter.takes(this.documents[ordinal]!.no, memory.int32[chunks + at]!))
          continue
        best.offer(estimate - error)
        rows.push(first + at)
        mosts.push(estimate + error)
      }
    }
    return { rows, mosts, least: best.least }
  }

  get count(): number {
    return this.rows
  }

  allSlabs(): readonly number[] {
    return this.slabs.map((_, place) => place)
  }

  /** Slabs with other rows than when this was asked last, in order. */
  takeChanged(): readonly number[] {
    const changed = [...this.changed].filter((place) => place < this.slabs.length)
    this.changed.clear()
    return changed.sort((a, b) => a - b)
  }

  /** Copies rows from the first of a slab on, with their columns, as a device keeps them. */
  copyRows(first: number, count: number, int8: Uint8Array, columns: Uint8Array): void {
    const { memory, layout } = this
    const view = new DataView(columns.buffer, columns.byteOffset)
    for (let row = first; row < first + count; row++) {
      const [slab, at] = [this.slabOf(row), row % layout.rows]
      const from = slab + at * layout.stride
      int8.set(memory.int8.subarray(from, from + layout.stride), (row - first) * layout.stride)
      const to = (row - first) * columnBytes
      view.setFloat32(to, memory.float32[(slab + layout.scales) / 4 + at]!, true)
      view.setFloat32(to + 4, memory.float32[(slab + layout.errors) / 4 + at]!, true)
      view.setUint32(to + 8, memory.int32[(slab + layout.documents) / 4 + at]!, true)
    }
  }

  /** The first pass of a search, for a device. */
  firstPass({ vector, limit, nowMs }: ScanQuery): FirstPass {
    const { memory, layout, documents } = this
    const { scale, lost } = memory.setQuery(vector, layout.stride)
    const visible = new Uint32Array(Math.max(1, Math.ceil(documents.length / 32)))
    for (const [ordinal, known] of documents.entries())
      if (known && known.expiresMs > nowMs) visible[ordinal >> 5]! |= 1 << (ordinal & 31)
    return {
      rows: this.rows,
      query: memory.query(layout.stride),
      scale,
      norm: Math.hypot(...vector),
      lost: lost * 1.01 + slack,
      visible,
      limit,
    }
  }

  /** The second pass: the best of these rows. */
  bestOf(rows: Iterable<number>, { vector, limit }: ScanQuery): readonly ScoredChunk[] {
    const best = new BestChunks(limit)
    for (const row of rows) best.offer(this.scored(row, vector))
    return best.hits
  }

  /** Gives all memory back. */
  clear(): void {
    for (const slab of this.slabs) this.memory.give(slab)
    this.slabs.length = 0
    this.changes++
    this.rows = 0
  }
}
