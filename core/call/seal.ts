import { Effect } from "effect"
import { type ApiError, apiError, type PortError } from "../errors.ts"
import type { Log } from "../services/log.ts"

/** Clients see `internal_error`; the log sees what a port said, or where a plugin threw. */
export const seal =
  (log: Log) =>
  <A, R>(effect: Effect.Effect<A, ApiError | PortError, R>): Effect.Effect<A, ApiError, R> => {
    const internal = (message: string, fields: Record<string, unknown>) =>
      Effect.suspend(() => {
        log.error(message, fields)
        return Effect.fail(apiError("internal_error"))
      })
    return effect.pipe(
      Effect.catchTag("PortError", (error) => internal("a port failed", { port: error.port, reason: error.message, cause: String(error.cause ?? "") })),
      Effect.catchDefect((defect) => internal("a plugin threw", { cause: defect instanceof Error ? defect.stack : String(defect) })),
    )
  }
