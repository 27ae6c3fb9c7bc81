import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  isId,
  type PortError,
  parseRupiah,
} from "../../../core/index.ts"
import { changedFields } from "../changed-fields.ts"
import type { AccountsDeps } from "../deps.ts"
import { auditLimits } from "../limits/limits.ts"
import { type KeyRow, type KeyRowChanges, makeKeyStore } from "./key-store.ts"
import { revokeRow } from "./record-key.ts"
import { checkExpiry, checkModels, checkScopes } from "./scopes.ts"
import { limitsJson, limitsOfRow, secondsOrNull } from "./to-key.ts"
import type { ChangeKey, SomeLimits } from "./wire.ts"

const noSuchKey = () => apiError("not_found", "There is no such key.")

/** The columns of the limits that are given; null counts as absent. */
export const limitColumns = (limits: SomeLimits | null | undefined): KeyRowChanges => {
  const { rpm, rpd, concurrency, monthly_cap_idr: cap, body_mb } = limits ?? {}
  return {
    ...(typeof rpm === "number" && { rpm }),
    ...(typeof rpd === "number" && { rpd }),
    ...(typeof concurrency === "number" && { concurrency }),
    ...(typeof body_mb === "number" && { body_mb }),
    ...(typeof cap === "number" && { monthly_cap_micros: parseRupiah(String(cap)) }),
  }
}

const shownFields = (row: KeyRow) => ({
  name: row.name,
  scopes: row.scopes,
  models: row.models,
  expires_at: secondsOrNull(row.expires_at),
  limits: limitsJson(limitsOfRow(row)),
})

/** A key of another account is reported as unknown; the attempt is recorded. */
const refuseForeign = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
  action: string,
): Effect.Effect<never, ApiError | PortError> =>
  Effect.gen(function* () {
    const { account: actor } = caller.tenant
    const foreign = isId(id) ? yield* makeKeyStore(deps.database).get(id) : undefined
    if (foreign && (yield* deps.limiter.take(auditLimits(actor))) === 0)
      yield* deps.audit.record({
        actor,
        action: "key.deny",
        target: id,
        after: { attempt: action },
      })
    return yield* noSuchKey()
  })

type KeyUpdate = Effect.Effect<KeyRow | undefined, ApiError | PortError>

/** Uninterruptible, so that the caches are invalidated after every commit. */
const announced = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
  action: string,
  work: KeyUpdate,
): Effect.Effect<KeyRow, ApiError | PortError> =>
  Effect.uninterruptible(
    Effect.tap(work, (row) =>
      Effect.sync(() => {
        if (row) deps.keyChanges.announce({ key: id })
      }),
    ),
  ).pipe(
    Effect.flatMap((row) => (row ? Effect.succeed(row) : refuseForeign(deps, caller, id, action))),
  )

export const changeKey = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
  wanted: ChangeKey,
): Effect.Effect<KeyRow, ApiError | PortError> =>
  Effect.gen(function* () {
    const scopes = wanted.scopes ? yield* checkScopes(wanted.scopes, deps.endpoints()) : undefined
    const { expires_at, models } = wanted
    const expiresMs = expires_at ? yield* checkExpiry(expires_at, deps.clock.nowMs()) : undefined
    const allowed = models ? yield* checkModels(models, deps.models()) : null
    const store = makeKeyStore(deps.database)
    const { account } = caller.tenant
    const changes = {
      ...(typeof wanted.name === "string" && { name: wanted.name.trim() }),
      ...(scopes && { scopes }),
      ...(models !== undefined && { models: allowed }),
      ...(expires_at !== undefined && { expires_at: expiresMs ? new Date(expiresMs) : null }),
      ...limitColumns(wanted.limits),
    }
    const work = deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const before = isId(id) ? yield* store.lock(account, id, tx) : undefined
        if (!before || before.playground) return undefined
        if (before.revoked_at !== null)
          return yield* apiError("conflict", "This key was revoked: it can't be changed any more.")
        if (Object.keys(changes).length === 0) return before
        const after = yield* store.change(id, changes, tx)
        const changed = changedFields(shownFields(before), shownFields(after))
        if (changed)
          yield* deps.audit.record(
            { actor: account, action: "key.update", target: id, ...changed },
            tx,
          )
        return after
      }),
    )
    return yield* announced(deps, caller, id, "update", work)
  })

export const revokeKey = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
): Effect.Effect<KeyRow, ApiError | PortError> => {
  const work = deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const row = isId(id)
        ? yield* makeKeyStore(deps.database).lock(caller.tenant.account, id, tx)
        : undefined
      return row && (yield* revokeRow(deps, caller.tenant.account, row, tx))
    }),
  )
  return announced(deps, caller, id, "revoke", work)
}
