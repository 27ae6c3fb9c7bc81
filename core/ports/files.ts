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

/** A file that the server makes itself: outside the size limit and the quota of its owner. */
export type NewFile = Pick<
  StoredFile,
  "id" | "tenant" | "filename" | "purpose" | "blobKey" | "bytes" | "expiresMs"
>

/** The files of customers, for those who work with them: batches, retrieval. A deleted, expired or foreign one is not there. */
export interface Files {
  find(tenant: Tenant, id: string): Effect.Effect<StoredFile | undefined, PortError>
  /** Whether it is one of theirs, or was in the last 30 days. */
  knows(tenant: Tenant, id: string): Effect.Effect<boolean, PortError>
  /** Bytes `from` to `to`, both inclusive. Fails with `BlobMissing` when it is deleted meanwhile. */
  read(
    file: StoredFile,
    range?: { readonly from: number; readonly to?: number },
  ): Stream.Stream<Uint8Array, StorageError>
  newId(): string
  /** Where to put the blob of a file that is to be. It is swept unless `create` names it within an hour. */
  newBlobKey(tenant: Tenant): string
  /** The blob is there already, and belongs to the file from now on; with `tx` only if that commits. */
  create(file: NewFile, tx?: Transaction): Effect.Effect<StoredFile, PortError>
  /** How far ingest is. Answers whether the file is still there. */
  mark(
    tenant: Tenant,
    id: string,
    status: FileStatus,
    details?: string,
    tx?: Transaction,
  ): Effect.Effect<boolean, PortError>
  /** Gone at once; its bytes within seconds of the commit. Answers whether it was there. */
  remove(tenant: Tenant, id: string, tx?: Transaction): Effect.Effect<boolean, PortError>
}
