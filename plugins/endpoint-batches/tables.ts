import type { Generated, Selectable } from "kysely"
import type { BatchErrorCode, Json, Tenant } from "../../core/index.ts"

/** Terminal: completed, failed, cancelled, expired. */
export type BatchStatus =
  | "validating"
  | "in_progress"
  | "completed"
  | "failed"
  | "cancelled"
  | "expired"

/** What is wrong with an input file; lines count from 1. */
export interface BatchError {
  readonly code: BatchErrorCode
  readonly message: string
  readonly line: number | null
  readonly param: string | null
}

/**
 * States: validating -> in_progress (pre-flight passed) -> completed | failed (the input can't be
 * read any more); validating -> failed (pre-flight);
 * validating | in_progress -> cancelled (asked) | expired (24 h are over). The last four are final.
 * Its worker knows its `epoch`, the fencing token of the lease: a worker with an older epoch
 * changes nothing any more.
 */
export interface BatchTable {
  readonly id: string
  /** Lists are in this order. */
  readonly seq: Generated<bigint>
  readonly account: string
  readonly mode: Tenant["mode"]
  /** Lines run as this key. */
  readonly key_id: string
  /** `/v1/chat/completions` */
  readonly endpoint: string
  readonly status: BatchStatus
  readonly input_file_id: string
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly metadata: Json
  /** Errors of the input, or of single lines where the batch runs; null: none. */
  readonly errors: readonly BatchError[] | null
  /** 0 until pre-flight has counted. */
  readonly total: number
  /** Number of lines that succeeded. */
  readonly completed: number
  readonly failed: number
  readonly cost_micros: bigint
  /** Increments with every claim. */
  readonly epoch: number
  readonly lease_until: Date | null
  /**
   * Lines up to here, counted from 1, are in segments; `done_offset`: the byte offset of the next
   * line.
   */
  readonly done_through: number
  readonly done_offset: bigint
  readonly created_at: Date
  readonly in_progress_at: Date | null
  /** When it came to its final state. */
  readonly ended_at: Date | null
  /** When it expires, if it has not ended. */
  readonly deadline_at: Date
  /** What the API shows: 30 days after creation. */
  readonly expires_at: Date
}

/**
 * The reorder buffer: answered lines that are in no segment yet. Committed with their settlement
 * and the counters.
 */
export interface LineTable {
  readonly batch_id: string
  /** Line number in the input file, from 1. */
  readonly line: number
  readonly ok: boolean
  /** A line of the output file, or of the error file, without its end. */
  readonly body: string
}

/**
 * A segment: consecutive lines of one of the two files, as a blob. Removed when the file is
 * complete, or not wanted any more.
 */
export interface PartTable {
  readonly batch_id: string
  readonly kind: "output" | "error"
  readonly part: number
  readonly blob_key: string
  readonly bytes: bigint
}

export interface BatchTables {
  readonly batches_batch: BatchTable
  readonly batches_line: LineTable
  readonly batches_part: PartTable
}

export type BatchRow = Selectable<BatchTable>
export type PartRow = Selectable<PartTable>
