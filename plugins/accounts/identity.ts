import { Effect } from "effect"
import { apiError, type Caller, type Clock, type Identity } from "../../core/index.ts"
import { isUsableKey, sha256Of } from "./api-key.ts"
import type { KeyRecord, KeyRows } from "./key-rows.ts"
import type { LastUsed } from "./last-used.ts"
import { makeLookupCache } from "./lookup-cache.ts"

const limits = { foundMs: 5_000, missingMs: 1_000, maxEntries: 10_000, maxLoads: 1_000 }

/** One text for a missing, an unknown and a revoked key, so that nothing is told about keys. */
const refuse = (key: KeyRecord | undefined) => {
  if (!key || key.revoked) return apiError("authentication_error")
  if (!key.verified) return apiError("email_not_verified")
  if (key.suspended) return apiError("account_suspended")
  return undefined
}

/** Keys are looked up, and cached, by their SHA-256: the keys themselves stay nowhere. */
export const makeIdentity = (keys: KeyRows, lastUsed: Pick<LastUsed, "note">, clock: Clock): Identity => {
  const bySha256 = makeLookupCache({ load: keys.bySha256, clock, ...limits })
  const byId = makeLookupCache({ load: keys.byId, clock, ...limits })
  const judge = (key: KeyRecord | undefined): Effect.Effect<KeyRecord, ReturnType<typeof apiError>> => {
    const refusal = refuse(key)
    return refusal || !key ? Effect.fail(refusal ?? apiError("authentication_error")) : Effect.succeed(key)
  }
  return {
    authenticate: (bearer) =>
      Effect.suspend(() => (isUsableKey(bearer) ? bySha256(sha256Of(bearer).toString("hex")) : Effect.succeed(undefined))).pipe(
        Effect.flatMap(judge),
        Effect.map((key): Caller => {
          lastUsed.note(key)
          return key.caller
        }),
      ),
    resume: (keyId) =>
      Effect.suspend(() => (/^[\x21-\x7e]{1,100}$/.test(keyId) ? byId(keyId) : Effect.succeed(undefined))).pipe(
        Effect.flatMap(judge),
        Effect.map((key) => key.caller),
      ),
  }
}
