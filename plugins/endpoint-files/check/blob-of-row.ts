import { Effect } from "effect"
import type { PortError, Storage, StorageError } from "../../../core/index.ts"

/** For a storage call that cannot fail in any other way. */
export const noBlobMissing = (error: StorageError): Effect.Effect<never, PortError> =>
  error._tag === "PortError" ? Effect.fail(error) : Effect.die(error)

/**
 * Returns the problem of the blob that a row names; undefined when it is stored and has the row's
 * size.
 */
export const problemOfBlob = (
  storage: Storage,
  key: string,
  bytes: number,
): Effect.Effect<string | undefined, PortError> =>
  Effect.matchEffect(storage.stat(key), {
    onSuccess: (info) =>
      Effect.succeed(
        info.bytes === bytes ? undefined : `its blob ${key} has ${info.bytes} bytes, not ${bytes}`,
      ),
    onFailure: (error) =>
      error._tag === "BlobMissing"
        ? Effect.succeed(`its blob ${key} of ${bytes} bytes is missing`)
        : noBlobMissing(error),
  })

export const isBlobThere = (storage: Storage, key: string): Effect.Effect<boolean, PortError> =>
  Effect.matchEffect(storage.stat(key), {
    onSuccess: () => Effect.succeed(true),
    onFailure: (error) =>
      error._tag === "BlobMissing" ? Effect.succeed(false) : noBlobMissing(error),
  })
