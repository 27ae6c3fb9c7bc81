import { Effect } from "effect"
import { type ApiError, apiError, type Call, type Caller } from "../../core/index.ts"

/** The path lets nobody through to `session` and `admin` endpoints without one. */
export const callerOf = <Body>({ caller }: Call<Body>): Effect.Effect<Caller, ApiError> =>
  caller ? Effect.succeed(caller) : Effect.fail(apiError("authentication_error"))
