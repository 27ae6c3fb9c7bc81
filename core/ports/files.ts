import type { Effect, Stream } from "effect"
import type { Tenant } from "../caller.ts"
import type { PortError } from "../errors.ts"
import type { StorageError } from "./storage.ts"
import type { Transaction } from "./transaction.ts"

export type FilePurpose = "batch_input" | "knowledge" | "batch_output" | "batch_error"
export type FileStatus = "uploaded" | "processing" | "processed" | "failed"

export interface StoredFile {
  readonly id: string
  readonly tenant: Tenant
  readonly filename: string
  readonly purpose: FilePurpose
  readonly status: FileStatus
  readonly statusDetails?: string | undefined
  readonly bytes: number
  readonly blobKey: string
  readonly createdMs: number
  readonly expiresMs: number
}

/** A file that the server itself writes: exempt from the owner's size limit and quota. */
export type NewFile = Pick<
  StoredFile,
  "id" | "tenant" | "filename" | "purpose" | "blobKey" | "bytes" | "expiresMs"
>

/**
 * The files of customers, for plugins that work with them (batches, retrieval). A deleted, expired
 * or foreign file does not exist.
 */
export interface Files {
  find(tenant: Tenant, id: string): Effect.Effect<StoredFile | undefined, PortError>
  /** Whether the file belongs to the tenant, or did within the last 30 days. */
  knows(tenant: Tenant, id: string): Effect.Effect<boolean, PortError>
  /**
   * Bytes `from` to `to`, both inclusive. Fails with `BlobMissing` when the file is deleted
   * meanwhile.
   */
  read(
    file: StoredFile,
    range?: { readonly from: number; readonly to?: number },
  ): Stream.Stream<Uint8Array, StorageError>
  newId(): string
  /**
   * Reserves the blob key of a new file. The blob is swept unless `create` names it within an hour.
   */
  newBlobKey(tenant: Tenant): string
  /** Creates the file for a blob that is already stored; with `tx`, when it commits. */
  create(file: NewFile, tx?: Transaction): Effect.Effect<StoredFile, PortError>
  /** Records the progress of ingest. Returns whether the file still exists. */
  mark(
    tenant: Tenant,
    id: string,
    status: FileStatus,
    details?: string,
    tx?: Transaction,
  ): Effect.Effect<boolean, PortError>
  /**
   * Deletes the file at once, and its bytes within seconds of the commit. Returns whether it
   * existed.
   */
  remove(tenant: Tenant, id: string, tx?: Transaction): Effect.Effect<boolean, PortError>
}
