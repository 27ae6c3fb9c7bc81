import { Effect } from "effect"
import { type ApiError, apiError, type Call, type Caller } from "../../core/index.ts"

/** The caller of a session, as this plugin's `sessions` returns it. */
export interface SessionCaller extends Caller {
  /** Absent for a token that was signed before sessions were listed. */
  readonly session?: {
    readonly id: string
    /** The administrator who sees the account, and can change nothing in it. */
    readonly actor?: string
  }
}

/** Returns the session of a caller whom `sessions` of this plugin returned, as all of its endpoints get it. */
export const sessionOf = (caller: Caller | undefined): SessionCaller["session"] =>
  (caller as SessionCaller | undefined)?.session

/** The caller of a `session` or `admin` endpoint, which the call path guarantees to be there. */
export const callerOf = <Body>({ caller }: Call<Body>): Effect.Effect<Caller, ApiError> =>
  caller ? Effect.succeed(caller) : Effect.fail(apiError("authentication_error"))
