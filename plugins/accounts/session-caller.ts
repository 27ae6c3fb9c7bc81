import { Effect } from "effect"
import { type ApiError, apiError, type Call, type Caller } from "../../core/index.ts"

/** The caller of a `session` or `admin` endpoint, which the call path guarantees to be there. */
export const callerOf = <Body>({ caller }: Call<Body>): Effect.Effect<Caller, ApiError> =>
  caller ? Effect.succeed(caller) : Effect.fail(apiError("authentication_error"))
