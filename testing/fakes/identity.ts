import { Effect } from "effect"
import { type Caller, defaultLimits, type Limits } from "../../core/caller.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Identity } from "../../core/ports/identity.ts"

/** A key and the state of its account. */
export interface FakeKey {
  readonly key: string
  readonly keyId?: string
  readonly account?: string
  readonly mode?: "live" | "test"
  readonly role?: "user" | "admin"
  readonly scopes?: readonly string[]
  readonly limits?: Limits
  readonly verified?: boolean
  readonly suspended?: boolean
  readonly revoked?: boolean
}

export interface FakeIdentity extends Identity {
  /**
   * Adds the key, or changes it. By default a live key of a verified user, with the default limits
   * and all scopes.
   */
  add(key: FakeKey): Caller & { readonly keyId: string }
}

const callerOf = (key: FakeKey, keyId: string): Caller & { readonly keyId: string } => ({
  tenant: { account: key.account ?? "acct_1", mode: key.mode ?? "live" },
  keyId,
  scopes: key.scopes ?? ["*"],
  role: key.role ?? "user",
  limits: key.limits ?? defaultLimits,
})

/** An identity of the keys that were added to it. */
export const fakeIdentity = (keys: readonly FakeKey[] = []): FakeIdentity => {
  const known = new Map<string, FakeKey & { readonly keyId: string }>()
  const judge = (
    key: (FakeKey & { readonly keyId: string }) | undefined,
  ): Effect.Effect<Caller, ApiError> => {
    if (!key || key.revoked) return Effect.fail(apiError("authentication_error"))
    if (key.verified === false) return Effect.fail(apiError("email_not_verified"))
    if (key.suspended) return Effect.fail(apiError("account_suspended"))
    return Effect.succeed(callerOf(key, key.keyId))
  }
  const add: FakeIdentity["add"] = (key) => {
    const before = known.get(key.key)
    const now = { ...before, ...key, keyId: key.keyId ?? before?.keyId ?? `key_${known.size + 1}` }
    known.set(key.key, now)
    return callerOf(now, now.keyId)
  }
  for (const key of keys) add(key)
  return {
    add,
    authenticate: (bearer) => Effect.suspend(() => judge(known.get(bearer))),
    resume: (keyId) =>
      Effect.suspend(() => judge([...known.values()].find((key) => key.keyId === keyId))),
  }
}
