/** The columns of a row: scale and rounding error (floats), the ordinal of its document, and 0. */
export const columnBytes = 16

/** What the scan's thread asks the device, in order. */
export type ToDevice =
  /** Makes room for an index of so many rows of `stride` bytes. */
  | {
      readonly type: "open"
      readonly index: number
      readonly stride: number
      readonly rows: number
    }
  /** Rows of int8 with their columns, from row `first` on. */
  | {
      readonly type: "rows"
      readonly index: number
      readonly first: number
      readonly int8: Uint8Array
      readonly columns: Uint8Array
    }
  | ({ readonly type: "search"; readonly id: number; readonly index: number } & FirstPass)
  | { readonly type: "drop"; readonly index: number }
  /** The last one. */
  | { readonly type: "close" }

/** What the first pass of a search needs. */
export interface FirstPass {
  /** How many rows the index has. */
  readonly rows: number
  /** The query as whole numbers, as long as a row. */
  readonly query: Int32Array
  /** What a sum of products is multiplied with, beside the row's scale. */
  readonly scale: number
  /** The norm of the query: times a row's error, what rounding the row changes at most. */
  readonly norm: number
  /** What rounding the query changes at most. */
  readonly lost: number
  /** A bit for each ordinal: whether its document is searched. */
  readonly visible: Uint32Array
  readonly limit: number
}

export type FromDevice =
  | { readonly type: "opened"; readonly index: number }
  /** The device has no room for the index. */
  | { readonly type: "refused"; readonly index: number; readonly reason: string }
  | { readonly type: "stored"; readonly index: number }
  /** The rows that may be among the best; undefined: too many, or the index is not there. */
  | { readonly type: "found"; readonly id: number; readonly rows?: Uint32Array }

/** What the thread hears of it: `lost` when the device's process ended, and all indices with it. */
export type DeviceNews = FromDevice | { readonly type: "lost" }
