import type { ScoredChunk } from "./best.ts"
import type { DeviceNews, ToDevice } from "./device/protocol.ts"
import type { PackedRows, ScanQuery } from "./packed-rows.ts"

/**
 * What the thread is asked, in order. An index is the vectors of one tenant in one space; `scan`
 * searches rows that are not kept.
 */
export type ToScan =
  | { readonly type: "open"; readonly index: number; readonly dimensions: number }
  | { readonly type: "add"; readonly index: number; readonly packed: PackedRows }
  | { readonly type: "remove"; readonly index: number; readonly documents: readonly number[] }
  | { readonly type: "drop"; readonly index: number }
  | { readonly type: "device"; readonly news: DeviceNews }
  | SearchMessage
  | ScanMessage

export interface SearchMessage {
  readonly type: "search"
  readonly id: number
  readonly index: number
  readonly query: ScanQuery
}

export interface ScanMessage {
  readonly type: "scan"
  readonly id: number
  readonly packed: PackedRows
  readonly query: ScanQuery
}

export type FromScan = ScanAnswer | { readonly toDevice: ToDevice }

export interface ScanAnswer {
  readonly id: number
  /** Undefined where the index was dropped meanwhile. */
  readonly hits: readonly ScoredChunk[] | undefined
}

export interface ScanThreadData {
  readonly slabs: number
  /** Indices of so many rows are searched on a device; absent: none are. */
  readonly deviceRows?: number
}
