import { Effect } from "effect"
import { type ApiError, apiError, type PortError } from "../../../core/index.ts"

/** Fails with 429 and `Retry-After` when the limiter returns a time to wait. */
export const refuseOverLimit = (
  waiting: Effect.Effect<number, PortError>,
  message: string,
): Effect.Effect<void, ApiError | PortError> =>
  Effect.flatMap(waiting, (waitMs) =>
    waitMs > 0
      ? Effect.fail(apiError("rate_limit_error", message, { retryAfterMs: waitMs }))
      : Effect.void,
  )
