import { Effect } from "effect"
import { type ApiError, apiError, type PortError } from "../../../core/index.ts"

/** 429 with `Retry-After` when a limiter says to wait. */
export const refuseOverLimit = (
  waiting: Effect.Effect<number, PortError>,
  message: string,
): Effect.Effect<void, ApiError | PortError> =>
  Effect.flatMap(waiting, (waitMs) =>
    waitMs > 0
      ? Effect.fail(apiError("rate_limit_error", message, { retryAfterMs: waitMs }))
      : Effect.void,
  )
