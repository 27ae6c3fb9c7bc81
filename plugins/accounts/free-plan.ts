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
const toApiError =
  (log: Log) =>
  ({ busy, port, message: reason, cause }: PortError): ApiError => {
    if (busy) return apiError("backend_busy")
    log.error("port.failed", "a port failed", { port, reason, cause: String(cause ?? "") })
    return apiError("internal_error")
  }

/** The error of a stream, which runs when the call path no longer sees it. */
export const streamError =
  (log: Log) =>
  (error: ApiError | PortError): ApiError =>
    error instanceof PortError ? toApiError(log)(error) : error

/** A plan that costs nothing. */
export const freePlan = (
  log: Log,
  work: Effect.Effect<Reply, ApiError | PortError, Scope.Scope>,
): Plan => ({
  bound: {},
  run: work.pipe(Effect.catchTag("PortError", (error) => Effect.fail(toApiError(log)(error)))),
})
