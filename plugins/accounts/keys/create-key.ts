import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  type Limits,
  type PortError,
  parseRupiah,
  type Transaction,
} from "../../../core/index.ts"
import { makeApiKey } from "../api-key.ts"
import type { AccountsDeps } from "../deps.ts"
import type { NewKey } from "../key-rows.ts"
import { limitsOf } from "../settings.ts"
import { type KeyRow, makeKeyStore } from "./key-store.ts"
import { expireRow, insertKey } from "./record-key.ts"
import { checkExpiry, checkModels, checkScopes } from "./scopes.ts"
import type { CreateKey, SomeLimits } from "./wire.ts"

export const maxActiveKeys = 100
export const maxPlaygroundKeys = 10
export const playgroundMs = 15 * 60_000

/** The only object with the key itself; it is not stored. */
export interface CreatedKey {
  readonly row: KeyRow
  readonly key: string
}

type Failure = ApiError | PortError

const limitsFor = (defaults: Limits, wanted: SomeLimits | null | undefined): Limits => ({
  rpm: wanted?.rpm ?? defaults.rpm,
  rpd: wanted?.rpd ?? defaults.rpd,
  concurrency: wanted?.concurrency ?? defaults.concurrency,
  monthlyCapMicros:
    typeof wanted?.monthly_cap_idr === "number"
      ? parseRupiah(String(wanted.monthly_cap_idr))
      : defaults.monthlyCapMicros,
  bodyMb: wanted?.body_mb ?? defaults.bodyMb,
})

/**
 * The lock of the account serializes parallel requests, so that each counts the keys of the others.
 */
const creating = (
  deps: AccountsDeps,
  key: NewKey,
  ensureCapacity: (tx: Transaction) => Effect.Effect<void, Failure>,
): Effect.Effect<CreatedKey, Failure> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      if (!(yield* deps.accounts.lock(key.account, tx)))
        return yield* apiError("authentication_error")
      yield* ensureCapacity(tx)
      yield* insertKey(deps, key.account, key, tx)
      const row = yield* makeKeyStore(deps.database).get(key.id, tx)
      return row ? { row, key: key.key } : yield* apiError("internal_error")
    }),
  )

export const createKey = (
  deps: AccountsDeps,
  caller: Caller,
  wanted: CreateKey,
): Effect.Effect<CreatedKey, Failure> =>
  Effect.gen(function* () {
    const mode = wanted.test ? "test" : "live"
    const { expires_at, models } = wanted
    const nowMs = deps.clock.nowMs()
    const key: NewKey = {
      id: deps.ids.make("key_"),
      account: caller.tenant.account,
      name: wanted.name.trim(),
      key: makeApiKey(mode),
      mode,
      limits: limitsFor(limitsOf(deps.settings), wanted.limits),
      scopes: yield* checkScopes(wanted.scopes ?? ["*"], deps.endpoints()),
      createdMs: nowMs,
      ...(typeof expires_at === "number" && { expiresMs: yield* checkExpiry(expires_at, nowMs) }),
      ...(models && { models: yield* checkModels(models, deps.models()) }),
    }
    const ensureCapacity = (tx: Transaction) =>
      Effect.flatMap(makeKeyStore(deps.database).countActive(key.account, tx), (active) =>
        active < maxActiveKeys
          ? Effect.void
          : Effect.fail(
              apiError(
                "conflict",
                `This account has ${maxActiveKeys} keys that work, and more are not allowed: revoke one first.`,
              ),
            ),
      )
    return yield* creating(deps, key, ensureCapacity)
  })

/** For the web app, whose session token is no API key. The oldest one beyond the limit expires, and what it began goes on. */
export const createPlaygroundKey = (
  deps: AccountsDeps,
  caller: Caller,
): Effect.Effect<CreatedKey, Failure> =>
  Effect.suspend(() => {
    const nowMs = deps.clock.nowMs()
    const { account } = caller.tenant
    const limits = limitsOf(deps.settings)
    const key: NewKey = {
      ...{
        id: deps.ids.make("key_"),
        account,
        name: "Playground",
        key: makeApiKey("live"),
        mode: "live",
        limits,
        createdMs: nowMs,
      },
      expiresMs: nowMs + playgroundMs,
      playground: true,
    }
    const gone: string[] = []
    const ensureCapacity = (tx: Transaction) =>
      Effect.gen(function* () {
        const active = yield* makeKeyStore(deps.database).playground(account, nowMs, tx)
        for (const row of active.slice(0, Math.max(0, active.length + 1 - maxPlaygroundKeys))) {
          yield* expireRow(deps, account, row, tx)
          gone.push(row.id)
        }
      })
    const announce = Effect.sync(() => {
      for (const id of gone) deps.keyChanges.announce({ key: id })
    })
    return Effect.uninterruptible(Effect.tap(creating(deps, key, ensureCapacity), () => announce))
  })
