import type { Generated, Selectable } from "kysely"
import type { Json, Tenant } from "../../core/index.ts"

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
  readonly code: string
  readonly message: string
  readonly line: number | null
  readonly param: string | null
}

/**
 * States: validating -> in_progress (pre-flight passed) -> completed | failed (the input can't be read any more); validating -> failed (pre-flight);
 * validating | in_progress -> cancelled (asked) | expired (24 h are over). The last four are final.
 * Who works on it has its `epoch`: a worker whose epoch is not the row's any more changes nothing.
 */
export interface BatchTable {
  readonly id: string
  /** The order of lists. */
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
  /** Of the input, as a list; null: none. */
  readonly errors: readonly BatchError[] | null
  /** 0 until pre-flight has counted. */
  readonly total: number
  /** Answered well. */
  readonly completed: number
  readonly failed: number
  readonly cost_micros: bigint
  /** Rises with every claim. */
  readonly epoch: number
  readonly lease_until: Date | null
  /** Lines up to here, counted from 1, lie in parts; `done_offset` is the byte at which the next one begins. */
  readonly done_through: number
  readonly done_offset: bigint
  readonly created_at: Date
  readonly in_progress_at: Date | null
  /** When it came to its final state, whichever. */
  readonly ended_at: Date | null
  /** Unfinished then, it expires. */
  readonly deadline_at: Date
  /** What the API shows: 30 days after creation. */
  readonly expires_at: Date
}

/** The reorder buffer: answered lines that lie in no part yet. Committed with their settlement and the counters. */
export interface LineTable {
  readonly batch_id: string
  /** Of the input file, counted from 1. */
  readonly line: number
  readonly ok: boolean
  /** A line of the output file, or of the error file, without its end. */
  readonly body: string
}

/** Consecutive lines of one of the two files, as a blob. Removed when the file is whole, or nobody wants it any more. */
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
