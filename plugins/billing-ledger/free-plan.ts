import { Effect, type Scope } from "effect"
import {
  type ApiError,
  apiError,
  type Log,
  type Plan,
  PortError,
  type Reply,
} from "../../core/index.ts"

/** What a port's failure looks like to a client; the log sees what it said. */
export const clientError =
  (log: Log) =>
  (error: ApiError | PortError): ApiError => {
    if (!(error instanceof PortError)) return error
    if (error.busy) return apiError("backend_busy")
    log.error("port.failed", "a port failed", {
      port: error.port,
      reason: error.message,
      cause: String(error.cause ?? ""),
    })
    return apiError("internal_error")
  }

/** A plan that costs nothing. */
export const freePlan = (
  log: Log,
  work: Effect.Effect<Reply, ApiError | PortError, Scope.Scope>,
): Plan => ({ bound: {}, run: Effect.mapError(work, clientError(log)) })
