import { Effect } from "effect"
import { type ApiError, apiError, type PortError } from "../errors.ts"
import type { Log } from "../services/log.ts"

/** Clients see `internal_error` (a full queue: `backend_busy`); the log sees what a port said, or where a plugin threw. */
export const maskInternalErrors = (
  log: Log,
): (<A, R>(effect: Effect.Effect<A, ApiError | PortError, R>) => Effect.Effect<A, ApiError, R>) => {
  const internal = Effect.fail(apiError("internal_error"))
  const onPortError = ({
    busy,
    port,
    message: reason,
    cause,
  }: PortError): Effect.Effect<never, ApiError> =>
    Effect.suspend(() => {
      if (busy) return Effect.fail(apiError("backend_busy"))
      log.error("port.failed", "a port failed", { port, reason, cause: String(cause ?? "") })
      return internal
    })
  const onDefect = (defect: unknown) =>
    Effect.suspend(() => {
      const thrown = defect instanceof Error ? defect.stack : String(defect)
      log.error("plugin.threw", "a plugin threw", { cause: thrown })
      return internal
    })
  return (effect) => Effect.catchDefect(Effect.catchTag(effect, "PortError", onPortError), onDefect)
}
