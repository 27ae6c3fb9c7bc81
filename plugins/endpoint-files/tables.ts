import type { ColumnType, Generated, Selectable } from "kysely"
import type { FilePurpose, FileStatus, Json, Strings, Tenant } from "../../core/index.ts"

interface Owned {
  readonly account: string
  readonly mode: Tenant["mode"]
}

/**
 * States: uploaded -> processing -> processed | failed (knowledge only; processing again is
 * allowed); other files are `uploaded` or `processed` from the start; any -> deleted, which stays for a while so that pages of a list still find their place.
 */
export interface FileTable extends Owned {
  readonly id: string
  /** The sort key of lists. */
  readonly seq: Generated<bigint>
  readonly filename: string
  readonly purpose: FilePurpose
  readonly status: FileStatus | "deleted"
  readonly status_details: string | null
  readonly progress: Json
  /** Null for what the server made. */
  readonly key_id: string | null
  readonly metadata: ColumnType<Strings, string, never>
  readonly bytes: bigint
  /** False for files that the server made: they are outside the quota. */
  readonly counted: boolean
  readonly blob_key: string
  /** Whether observers heard of it. */
  readonly observed: boolean
  readonly created_at: Date
  readonly expires_at: Date
  readonly deleted_at: Date | null
}

/**
 * An incoming blob. The row is inserted before the first byte, so that every blob is named by a row
 * at all times. A request whose row is gone has lost the blob.
 */
export interface IncomingTable extends Owned {
  readonly id: string
  readonly blob_key: string
  /** The quota that it holds. */
  readonly held_bytes: bigint
  readonly lease_until: Date
}

/**
 * The quota in use by files and open uploads. Locked last, after the rows whose bytes it counts.
 */
export interface QuotaTable extends Owned {
  readonly bytes: bigint
  readonly files: bigint
}

/** The deletion queue: blobs that no row names any more. */
export interface DeletionTable {
  readonly blob_key: string
  readonly due_at: Date
}

/**
 * States: pending -> completed (its file is there) | cancelled | expired. While `completing` names
 * a row of `files_incoming`, nothing else moves it.
 */
export interface UploadTable extends Owned {
  readonly id: string
  readonly filename: string
  readonly purpose: "batch_input" | "knowledge"
  /** Status of the file that it becomes. */
  readonly file_status: FileStatus
  /** Metadata of the file that it becomes. */
  readonly metadata: ColumnType<Strings, string, never>
  readonly bytes: bigint
  readonly keep_ms: bigint
  readonly status: "pending" | "completed" | "cancelled" | "expired"
  readonly completing: string | null
  readonly file_id: string | null
  readonly created_at: Date
  readonly expires_at: Date
}

export interface PartTable {
  readonly id: string
  readonly upload_id: string
  readonly bytes: bigint
  readonly blob_key: string
  readonly created_at: Date
}

export interface FilesTables {
  readonly files_file: FileTable
  readonly files_incoming: IncomingTable
  readonly files_usage: QuotaTable
  readonly files_trash: DeletionTable
  readonly files_upload: UploadTable
  readonly files_part: PartTable
}

export type FileRow = Selectable<FileTable>
export type UploadRow = Selectable<UploadTable>
export type PartRow = Selectable<PartTable>
