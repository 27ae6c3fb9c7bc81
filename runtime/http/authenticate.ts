import { Effect } from "effect"
import type { Caller } from "../../core/caller.ts"
import type { Endpoint } from "../../core/endpoint.ts"
import { type ApiError, apiError, type PortError } from "../../core/errors.ts"
import type { Identity } from "../../core/services/identity.ts"

export interface Authenticators {
  /** Whose API key is it? */
  readonly identity: () => Identity
  /** Whose session token is it? Absent: nobody gets to `session` and `admin` endpoints. A key is no session, and the other way round. */
  readonly sessions?: (() => Identity | undefined) | undefined
}

const refuse = (message: string) => Effect.fail(apiError("authentication_error", message, { headers: { "www-authenticate": "Bearer" } }))

/** Exactly one space and visible ASCII (RFC 6750, section 2.1); the scheme's case does not matter (RFC 9110, section 11.1). */
const bearer = /^bearer ([\x21-\x7e]+)$/i

/** The caller of a request, `undefined` on public endpoints, whose `Authorization` is ignored. */
export const authenticate = (endpoint: Endpoint, authorization: string | undefined, by: Authenticators): Effect.Effect<Caller | undefined, ApiError | PortError> =>
  Effect.suspend((): Effect.Effect<Caller | undefined, ApiError | PortError> => {
    if (endpoint.access === "public") return Effect.succeed(undefined)
    if (authorization === undefined) return refuse("There is no API key in the request: send it as 'Authorization: Bearer <key>'.")
    const token = bearer.exec(authorization)?.[1]
    if (token === undefined) return refuse("The Authorization header must be 'Bearer <key>', with one space and none in the key.")
    const identity = endpoint.access === "key" ? by.identity() : by.sessions?.()
    if (!identity) return refuse("This endpoint needs a session of the dashboard.")
    return Effect.tap(identity.authenticate(token), (caller) => (endpoint.access === "admin" && caller.role !== "admin" && identity.denied?.(caller, endpoint.id)) || Effect.void)
  })
