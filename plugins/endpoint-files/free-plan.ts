import { Effect, type Scope } from "effect"
import {
  type ApiError,
  apiError,
  type Log,
  type Plan,
  type Reply,
  type StorageError,
} from "../../core/index.ts"

export type Failure = ApiError | StorageError

export const tooLarge = (maxBytes: number): ApiError =>
  apiError("payload_too_large", `The file is larger than ${maxBytes} bytes, the limit.`, {
    param: "file",
  })

const internal = (log: Log, reason: string, cause?: unknown): ApiError => {
  log.error("port.failed", "a port failed", { reason, cause: String(cause ?? "") })
  return apiError("internal_error")
}

/** What a failure of the disk or the database looks like to a client; the log sees what it said. */
export const toApiError =
  (log: Log) =>
  (error: Failure): ApiError => {
    switch (error._tag) {
      case "ApiError":
        return error
      case "StorageFull":
        log.error("storage.full", "the disk is full", { key: error.key })
        return apiError("storage_full")
      case "BlobTooLarge":
        return tooLarge(error.maxBytes)
      case "BlobMissing":
        return internal(log, `the blob ${error.key} is missing`)
      case "PortError":
        return error.busy
          ? apiError("backend_busy")
          : internal(log, `${error.port}: ${error.message}`, error.cause)
    }
  }

/** A plan that costs nothing. `check`: for a dry run, what can be said only by reading on, and whether it would succeed. */
export const freePlan = (
  log: Log,
  work: Effect.Effect<Reply, Failure, Scope.Scope>,
  check?: Effect.Effect<boolean, Failure>,
): Plan => ({
  bound: {},
  run: Effect.mapError(work, toApiError(log)),
  ...(check && {
    forecast: Effect.map(Effect.mapError(check, toApiError(log)), (wouldSucceed) => ({
      bound: {},
      costMicros: 0n,
      wouldSucceed,
      more: {},
    })),
  }),
})
