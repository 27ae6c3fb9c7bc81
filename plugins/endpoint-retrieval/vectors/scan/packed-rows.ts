import { floatOfHalf } from "../half-floats.ts"
import { BestChunks, type ScoredChunk } from "./best.ts"

/** Chunks of a document, `from` and `to` inclusive. */
export interface ScanRange {
  readonly document: number
  readonly from: number
  readonly to: number
}

export interface ScanQuery {
  /** As long as the rows. */
  readonly vector: Float32Array
  readonly limit: number
  readonly nowMs: number
  /** Absent: all. */
  readonly ranges?: readonly ScanRange[]
}

/** The numbers of a chunk and its vector, as they come from the database, one after another. */
export interface PackedRows {
  readonly document: number
  /** Unix ms; from then on the document is not found. */
  readonly expiresMs: number
  /** The chunk's index as 4 bytes, big-endian, and halves, little-endian, for each row. */
  readonly rows: Uint8Array
}

export const packedRowBytes = (dimensions: number): number => 4 + 2 * dimensions

/** Reads packed rows: the index of each chunk, with its halves, which the next row overwrites. */
export function* unpack(
  { rows }: PackedRows,
  dimensions: number,
): Generator<{ readonly chunk: number; readonly halves: Uint16Array }> {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength)
  const halves = new Uint16Array(dimensions)
  const bytes = new Uint8Array(halves.buffer)
  const rowBytes = packedRowBytes(dimensions)
  for (let at = 0; at + rowBytes <= rows.length; at += rowBytes) {
    bytes.set(rows.subarray(at + 4, at + rowBytes))
    yield { chunk: view.getInt32(at), halves }
  }
}

/** The exact cosine of a query with a stored vector, both of norm 1. */
export const product = (query: Float32Array, halves: Uint16Array, from = 0): number => {
  let sum = 0
  for (let i = 0; i < query.length; i++) sum += query[i]! * floatOfHalf[halves[from + i]!]!
  return sum
}

export const rangesByDocument = (
  ranges: readonly ScanRange[],
): ReadonlyMap<number, readonly ScanRange[]> => {
  const byDocument = new Map<number, ScanRange[]>()
  for (const range of ranges) {
    const known = byDocument.get(range.document)
    if (known) known.push(range)
    else byDocument.set(range.document, [range])
  }
  return byDocument
}

/** Which chunks of which documents are searched. */
export class Filter {
  private readonly ranges: ReadonlyMap<number, readonly ScanRange[]> | undefined

  constructor(ranges: readonly ScanRange[] | undefined) {
    this.ranges = ranges && rangesByDocument(ranges)
  }

  takes(document: number, chunk: number): boolean {
    if (!this.ranges) return true
    return this.ranges.get(document)?.some(({ from, to }) => chunk >= from && chunk <= to) ?? false
  }
}

/** Searches packed rows, as an index of them would. */
export const searchPacked = (packed: PackedRows, query: ScanQuery): readonly ScoredChunk[] => {
  const { document, expiresMs } = packed
  const { vector, limit, nowMs, ranges } = query
  if (expiresMs <= nowMs) return []
  const filter = new Filter(ranges)
  const best = new BestChunks(limit)
  for (const { chunk, halves } of unpack(packed, vector.length))
    if (filter.takes(document, chunk))
      best.offer({ document, chunk, score: product(vector, halves) })
  return best.hits
}
