import { Effect } from "effect"
import type { Caller } from "../../../core/caller.ts"
import { type ApiError, apiError, type PortError } from "../../../core/errors.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"
import type { Identity } from "../../../core/ports/identity.ts"

export interface Authenticators {
  /** Resolves API keys. */
  readonly identity: () => Identity
  /**
   * Resolves session tokens. Absent: `session` and `admin` endpoints refuse everybody. A key is no
   * session, nor a session a key.
   */
  readonly sessions?: (() => Identity | undefined) | undefined
}

const refuse = (message: string) =>
  Effect.fail(
    apiError("authentication_error", message, { headers: { "www-authenticate": "Bearer" } }),
  )

/** The messages for a missing and for a malformed header. */
const messagesFor = (access: Endpoint["access"]): readonly [missing: string, broken: string] =>
  access === "key"
    ? [
        "There is no API key in the request: send it as 'Authorization: Bearer <key>'.",
        "The Authorization header must be 'Bearer <key>', with one space and none in the key.",
      ]
    : [
        "There is no session in the request: sign in, and send its token as 'Authorization: Bearer <token>'.",
        "The Authorization header must be 'Bearer <token>', with one space and none in the token.",
      ]

/**
 * Exactly one space and visible ASCII (RFC 6750, section 2.1); the scheme's case does not matter
 * (RFC 9110, section 11.1).
 */
const bearer = /^bearer ([\x21-\x7e]+)$/i

/** The caller of a request, `undefined` on public endpoints, whose `Authorization` is ignored. */
export const authenticate = (
  endpoint: Endpoint,
  authorization: string | undefined,
  by: Authenticators,
): Effect.Effect<Caller | undefined, ApiError | PortError> => {
  if (endpoint.access === "public") return Effect.succeed(undefined)
  const [missing, broken] = messagesFor(endpoint.access)
  if (authorization === undefined) return refuse(missing)
  const token = bearer.exec(authorization)?.[1]
  if (token === undefined) return refuse(broken)
  const identity = endpoint.access === "key" ? by.identity() : by.sessions?.()
  if (!identity) return refuse("This endpoint needs a session of the dashboard.")
  const authenticated = identity.authenticate(token)
  if (endpoint.access !== "admin") return authenticated
  return Effect.tap(
    authenticated,
    (caller) => (caller.role !== "admin" && identity.denied?.(caller, endpoint.id)) || Effect.void,
  )
}
