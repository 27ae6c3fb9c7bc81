import { Effect, Semaphore } from "effect"
import { PortError, type SigningPurpose } from "../../core/index.ts"
import { type KeyRow, makeKeyRows } from "./key-rows.ts"
import { ensureKey, type KeyRingDeps } from "./make-key.ts"
import { decryptPrivate, type RingKey, type SigningKey, toRingKey } from "./ring-key.ts"
import { shareLoad } from "./shared-load.ts"

const reloadGapMs = 1_000
/** Most requests that wait for an unknown key to be looked up. */
const maxWaiting = 1_000

export interface KeyRing {
  /** Returns the key that signs now; makes one when this replica can decrypt none. */
  current(purpose: SigningPurpose): Effect.Effect<SigningKey, PortError>
  /**
   * Looks an unknown key up in the database; all such requests together cause one query a second.
   */
  find(kid: string): Effect.Effect<RingKey | undefined, PortError>
  /** All accepted keys, newest first, at most a second old while the database answers. */
  readonly published: Effect.Effect<readonly RingKey[]>
  readonly load: Effect.Effect<void, PortError>
  /** Deletes private halves and keys that are no longer needed. */
  readonly erase: Effect.Effect<void, PortError>
}

/**
 * Imports the keys of all rows. A row that can't be read is logged and skipped, so that the other
 * keys still work.
 */
const readRows = (
  rows: readonly KeyRow[],
  known: ReadonlyMap<string, RingKey>,
  { secrets, clock, log }: KeyRingDeps,
): Effect.Effect<ReadonlyMap<string, RingKey>> => {
  const unreadable = (row: KeyRow, cause: unknown): undefined => {
    log.error("signing_key.unreadable", "a signing key can't be read; its signatures are refused", {
      kid: row.kid,
      cause: String(cause),
    })
  }
  const read = (row: KeyRow) =>
    toRingKey(row, decryptPrivate(row, secrets, clock.nowMs()), known.get(row.kid)).catch((cause) =>
      unreadable(row, cause),
    )
  return Effect.map(
    Effect.promise(() => Promise.all(rows.map(read))),
    (keys) => new Map(keys.filter((key) => key !== undefined).map((key) => [key.kid, key])),
  )
}

/**
 * The keys of all replicas, in memory. States of a key: (none) -> signing (made by a replica that
 * can decrypt no signing key) -> retired (`rotateDays` later: verifies only, its private half is
 * erased) -> (none: a session key, `sessionGraceMs` later). A receipt key stays retired forever.
 */
export const makeKeyRing = (deps: KeyRingDeps): KeyRing => {
  const { clock, log } = deps
  const rows = makeKeyRows(deps.database)
  const making = Semaphore.makeUnsafe(1)
  let keys: ReadonlyMap<string, RingKey> = new Map()
  let waiting = 0
  const load = Effect.gen(function* () {
    keys = yield* readRows(yield* rows.accepted(clock.nowMs()), keys, deps)
  })
  const loads = shareLoad(load, clock, reloadGapMs)
  const signing = (purpose: SigningPurpose) =>
    [...keys.values()].find(
      (key): key is SigningKey =>
        key.purpose === purpose && key.signKey !== undefined && key.retiresMs > clock.nowMs(),
    )
  const accepted = (key: RingKey | undefined) =>
    key !== undefined && key.acceptedUntilMs > clock.nowMs() ? key : undefined
  const make = (purpose: SigningPurpose) =>
    Effect.gen(function* () {
      if (!signing(purpose)) yield* Effect.andThen(ensureKey(deps, rows, purpose), loads.now)
      return (
        signing(purpose) ??
        (yield* new PortError({ port: "signer", message: `no ${purpose} key could be made` }))
      )
    })
  const lookUp = (kid: string) => {
    if (waiting >= maxWaiting) return Effect.succeed(undefined)
    waiting++
    return loads.paced.pipe(
      Effect.map(() => accepted(keys.get(kid))),
      Effect.ensuring(Effect.sync(() => void waiting--)),
    )
  }
  const known = Effect.catch(loads.ifOld, (error) =>
    Effect.sync(() =>
      log.warn(
        "signing_key.reload_failed",
        "the signing keys could not be read again; known ones are published",
        {
          cause: error.message,
        },
      ),
    ),
  )
  return {
    current: (purpose) =>
      Effect.suspend(() => {
        const key = signing(purpose)
        return key ? Effect.succeed(key) : making.withPermits(1)(make(purpose))
      }),
    find: (kid) =>
      Effect.suspend(() => (keys.has(kid) ? Effect.succeed(accepted(keys.get(kid))) : lookUp(kid))),
    published: Effect.map(known, () =>
      [...keys.values()].filter((key) => accepted(key) !== undefined),
    ),
    load: loads.now,
    erase: Effect.suspend(() => rows.erase(clock.nowMs())),
  }
}
