import type { Effect, Stream } from "effect"
import type { Tenant } from "../caller.ts"
import type { PortError } from "../errors.ts"
import type { Json, Strings } from "../json.ts"
import type { ByteRange, StorageError } from "./storage.ts"
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
  /** The key that uploaded it; absent where the server made it, or no key came with the upload. */
  readonly keyId?: string | undefined
  /** What its owner filed it under, for filters. */
  readonly metadata: Strings
}

/** What a file object shows of the work on it: `details` is a sentence for people. */
export interface FileMark {
  readonly status: FileStatus
  readonly details?: string | undefined
  /** An object with the fields that the file object shows as `progress`. */
  readonly progress?: Json
}

/**
 * Runs inside the transaction that creates or deletes a file, and fails it: what follows from a
 * file is there with it, and goes with it. Its row is locked by then, so a transaction that marks a
 * file and writes rows of its own must mark first.
 */
export interface FileObserver {
  created(file: StoredFile, tx: Transaction): Effect.Effect<void, PortError>
  /** Also of an expired file, some time after its `expiresMs`. */
  removed(tenant: Tenant, id: string, tx: Transaction): Effect.Effect<void, PortError>
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
  /** Fails with `BlobMissing` when the file is deleted meanwhile. */
  read(file: StoredFile, range?: ByteRange): Stream.Stream<Uint8Array, StorageError>
  newId(): string
  /**
   * Reserves the blob key of a new file. The blob is swept unless `create` names it within an hour.
   */
  newBlobKey(tenant: Tenant): string
  /** Creates the file for a blob that is already stored; with `tx`, when it commits. */
  create(file: NewFile, tx?: Transaction): Effect.Effect<StoredFile, PortError>
  /**
   * Calls the observer for every file from now on, and for knowledge that nobody observed so far.
   * A knowledge file waits as `uploaded` for the observer that marks it; where there is none, it is
   * `processed` at once.
   */
  observe(observer: FileObserver): void
  /** Replaces status, details and progress. Returns whether the file still exists. */
  mark(
    tenant: Tenant,
    id: string,
    mark: FileMark,
    tx?: Transaction,
  ): Effect.Effect<boolean, PortError>
  /**
   * Deletes the file at once, and its bytes within seconds of the commit. Returns whether it
   * existed.
   */
  remove(tenant: Tenant, id: string, tx?: Transaction): Effect.Effect<boolean, PortError>
}
