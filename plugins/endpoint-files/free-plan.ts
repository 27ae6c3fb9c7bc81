import { Effect, type Scope } from "effect"
import { type ApiError, apiError, type Log, type Plan, type Reply, type StorageError } from "../../core/index.ts"

export type Failure = ApiError | StorageError

const internal = (log: Log, reason: string, cause?: unknown): ApiError => {
  log.error("a port failed", { reason, cause: String(cause ?? "") })
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
        log.error("the disk is full", { key: error.key })
        return apiError("storage_full")
      case "BlobTooLarge":
        return apiError("payload_too_large", `The file is larger than ${error.maxBytes} bytes, the limit.`, { param: "file" })
      case "BlobMissing":
        return internal(log, `the blob ${error.key} is missing`)
      case "PortError":
        return error.busy ? apiError("backend_busy") : internal(log, `${error.port}: ${error.message}`, error.cause)
    }
  }

/** A plan that costs nothing. */
export const freePlan = (log: Log, work: Effect.Effect<Reply, Failure, Scope.Scope>): Plan => ({ bound: {}, run: Effect.mapError(work, toApiError(log)) })
