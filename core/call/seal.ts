import { Effect } from "effect"
import { type ApiError, apiError, type PortError } from "../errors.ts"
import type { Log } from "../services/log.ts"

/** Clients see `internal_error` (a full queue: `backend_busy`); the log sees what a port said, or where a plugin threw. */
export const seal = (
  log: Log,
): (<A, R>(effect: Effect.Effect<A, ApiError | PortError, R>) => Effect.Effect<A, ApiError, R>) => {
  const internal = (message: string, fields: Record<string, unknown>) =>
    Effect.suspend(() => {
      log.error(message, fields)
      return Effect.fail(apiError("internal_error"))
    })
  const onPortError = ({
    busy,
    port,
    message: reason,
    cause,
  }: PortError): Effect.Effect<never, ApiError> =>
    busy
      ? Effect.fail(apiError("backend_busy"))
      : internal("a port failed", { port, reason, cause: String(cause ?? "") })
  const onDefect = (defect: unknown) =>
    internal("a plugin threw", { cause: defect instanceof Error ? defect.stack : String(defect) })
  return (effect) => Effect.catchDefect(Effect.catchTag(effect, "PortError", onPortError), onDefect)
}
