import { Data, type Effect, type Stream } from "effect"
import type { PortError } from "../errors.ts"

/**
 * Keys are `/`-separated segments of 1 to 200 characters of `A-Z a-z 0-9 . _ -`; no segment is `.`
 * or `..`; at most 512 characters in all.
 */
export const isBlobKey = (key: string): boolean =>
  key.length <= 512 &&
  key
    .split("/")
    .every(
      (segment) => /^[A-Za-z0-9._-]{1,200}$/.test(segment) && segment !== "." && segment !== "..",
    )

export interface BlobInfo {
  readonly key: string
  readonly bytes: number
  readonly etag: string
}

export class BlobMissing extends Data.TaggedError("BlobMissing")<{ readonly key: string }> {}
export class BlobTooLarge extends Data.TaggedError("BlobTooLarge")<{
  readonly key: string
  readonly maxBytes: number
}> {}
export class StorageFull extends Data.TaggedError("StorageFull")<{ readonly key: string }> {}
export type StorageError = BlobMissing | BlobTooLarge | StorageFull | PortError

/** Both inclusive, as in HTTP's Range. */
export interface ByteRange {
  readonly from: number
  readonly to?: number
}

/** What a download by a link says of itself, as headers. */
export interface LinkHeaders {
  readonly mediaType: string
  readonly disposition: string
}

/** Blobs only: a blob is written before the row that names it; orphans are swept. */
export interface Storage {
  /** Atomic: readers see the old blob or the whole new one. */
  put<E>(
    key: string,
    body: Stream.Stream<Uint8Array, E>,
    maxBytes: number,
  ): Effect.Effect<BlobInfo, StorageError | E>
  get(key: string, range?: ByteRange): Stream.Stream<Uint8Array, StorageError>
  stat(key: string): Effect.Effect<BlobInfo, StorageError>
  /** Idempotent: removing a missing blob is no error. */
  remove(key: string): Effect.Effect<void, StorageError>
  list(prefix: string): Stream.Stream<BlobInfo, StorageError>
  /**
   * A URL under which anyone may GET the blob for a short time, ranges too; undefined where none is
   * wanted. Says nothing about whether the blob is there. Absent where the storage has no server.
   */
  link?(key: string, headers: LinkHeaders): Effect.Effect<string | undefined, PortError>
}
