import { Effect } from "effect"
import {
  ApiError,
  apiError,
  type Caller,
  type Clock,
  errorRegistry,
  type Identity,
} from "../../core/index.ts"
import { isUsableKey, sha256Of } from "./api-key.ts"
import type { KeyRecord, KeyRows } from "./key-rows.ts"
import type { LastUsed } from "./last-used.ts"
import { makeLookupCache } from "./lookup-cache.ts"

/**
 * A change on another server is noticed within 3 s, so that the contract's 5 s hold for a slow
 * lookup, too.
 */
const limits = { foundMs: 3_000, missingMs: 1_000, maxEntries: 10_000, maxLoads: 1_000 }

/** What the operator allows test keys. */
export interface TestKeyRules {
  readonly models: "all" | readonly string[]
  readonly rpd: number
}

const noRules: TestKeyRules = { models: "all", rpd: Number.POSITIVE_INFINITY }

/**
 * One message for missing, unknown, revoked and expired keys, so that it reveals nothing about
 * keys.
 */
const refuse = (key: KeyRecord, nowMs: number): ApiError | undefined => {
  if (key.revoked || nowMs >= key.expiresMs) return apiError("authentication_error")
  const code = !key.verified
    ? "email_not_verified"
    : key.suspended
      ? "account_suspended"
      : undefined
  // all scopes: the state of the account is reported before a missing scope
  return (
    code &&
    new ApiError({
      ...apiError(code),
      message: errorRegistry[code].about,
      barred: { ...key.caller, scopes: ["*"] },
    })
  )
}

const bothOf = (rules: readonly string[], own: readonly string[] | undefined) =>
  own ? own.filter((model) => rules.includes(model)) : rules

const underRules = (key: KeyRecord, { models, rpd }: TestKeyRules): KeyRecord => {
  if (key.caller.tenant.mode === "live") return key
  const limits = { ...key.caller.limits, rpd: Math.min(key.caller.limits.rpd, rpd) }
  return {
    ...key,
    caller: {
      ...key.caller,
      limits,
      ...(models !== "all" && { models: bothOf(models, key.caller.models) }),
    },
  }
}

/** Keys are looked up and cached by their SHA-256; the keys themselves are not kept. */
export const makeIdentity = (
  keys: KeyRows,
  lastUsed: Pick<LastUsed, "note">,
  clock: Clock,
  testKeys: TestKeyRules = noRules,
): Identity => {
  const cacheOf = (load: KeyRows["byId"]) =>
    makeLookupCache({
      load: (key: string) =>
        Effect.map(load(key), (record) => record && underRules(record, testKeys)),
      clock,
      ...limits,
    })
  const bySha256 = cacheOf(keys.bySha256)
  const byId = cacheOf(keys.byId)
  keys.changes.onChange((change) => {
    for (const cache of [bySha256, byId])
      cache.forget(({ id, caller, session }) => {
        if ("key" in change) return id === change.key
        if ("session" in change) return session?.id === change.session
        return caller.tenant.account === change.account || session?.actor === change.account
      })
  })
  const judge = (
    key: KeyRecord | undefined,
    nowMs = clock.nowMs(),
  ): Effect.Effect<KeyRecord, ApiError> => {
    if (!key) return Effect.fail(apiError("authentication_error"))
    const refusal = refuse(key, nowMs)
    return refusal ? Effect.fail(refusal) : Effect.succeed(key)
  }
  return {
    authenticate: (bearer) =>
      (isUsableKey(bearer)
        ? bySha256.find(sha256Of(bearer).toString("hex"))
        : Effect.succeed(undefined)
      ).pipe(
        Effect.flatMapEager((key) => judge(key)),
        Effect.mapEager((key): Caller => {
          lastUsed.note(key)
          return key.caller
        }),
      ),
    resume: (keyId) =>
      Effect.suspend(() =>
        /^[\x21-\x7e]{1,100}$/.test(keyId) ? byId.find(keyId) : Effect.succeed(undefined),
      ).pipe(
        // a batch from the web app takes longer than the key that began it
        Effect.flatMap((key) => judge(key, key?.playground ? 0 : undefined)),
        Effect.map((key) => key.caller),
      ),
  }
}
