import type { Kind, ReadBatch, ReadFailureCode } from "../extract/kind.ts"

export interface ReadLimits {
  readonly chunkCharacters: number
  readonly chunkOverlap: number
  readonly maxChunks: number
  readonly maxPages: number
}

/**
 * The two sides take turns: each message of the server lets the process work until it has one of
 * its own, so neither is ahead of the other by more than that.
 */
export type ToProcess =
  | { readonly type: "read"; readonly kind: Kind; readonly limits: ReadLimits }
  | { readonly type: "bytes"; readonly bytes: readonly Uint8Array[] }
  | { readonly type: "bytes-end" }
  | { readonly type: "next" }

export type FromProcess =
  | { readonly type: "more-bytes" }
  | { readonly type: "batch"; readonly batch: ReadBatch }
  /** Memory in bytes. */
  | { readonly type: "done"; readonly batch: ReadBatch; readonly rss: number }
  | { readonly type: "failed"; readonly code: ReadFailureCode; readonly message: string }
  | { readonly type: "crashed"; readonly message: string }
