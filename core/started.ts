import { Effect } from "effect"
import { type ApiError, apiError } from "./errors.ts"

const retryAfterMs = 2_000

/** What a plugin opens when it starts, for its endpoints: with 503 `server_starting` until then. */
export type WhenStarted<T> = Effect.Effect<T, ApiError>

/** Endpoints are registered before the plugin starts, so they share this holder with `start`. */
export interface Started<T> {
  readonly get: WhenStarted<T>
  set(value: T): void
}

export const makeStarted = <T>(): Started<T> => {
  let get: WhenStarted<T> = Effect.fail(apiError("server_starting", undefined, { retryAfterMs }))
  return {
    get: Effect.suspend(() => get),
    set: (value) => {
      get = Effect.succeed(value)
    },
  }
}
