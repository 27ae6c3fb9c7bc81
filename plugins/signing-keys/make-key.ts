import { Effect } from "effect"
import {
  type Clock,
  type Database,
  type Log,
  PortError,
  type Secrets,
  type SigningPurpose,
} from "../../core/index.ts"
import { makeKeyPair } from "./key-pair.ts"
import type { KeyRow, KeyRows } from "./key-rows.ts"
import { decryptPrivate } from "./ring-key.ts"

/** Session tokens are valid for 24 hours; one hour is for clocks that differ. */
export const sessionGraceMs = 25 * 60 * 60_000
const dayMs = 24 * 60 * 60_000

export interface KeyRingDeps {
  readonly database: Database
  readonly clock: Clock
  readonly secrets: Secrets
  readonly log: Log
  readonly rotateDays: number
}

const newRow = (
  { clock, secrets, rotateDays }: KeyRingDeps,
  purpose: SigningPurpose,
): Effect.Effect<KeyRow, PortError> =>
  Effect.gen(function* () {
    const made = yield* Effect.tryPromise({
      try: makeKeyPair,
      catch: (cause) =>
        new PortError({ port: "signer", message: "a signing key could not be made", cause }),
    })
    const nowMs = clock.nowMs()
    const retiresMs = nowMs + rotateDays * dayMs
    return {
      kid: made.kid,
      purpose,
      public_jwk: made.publicJwk,
      private_jwk: secrets.encrypt(made.privateJwk),
      sealed_by: secrets.keyId,
      created_at: new Date(nowMs),
      retires_at: new Date(retiresMs),
      accepted_until: purpose === "session" ? new Date(retiresMs + sessionGraceMs) : null,
    }
  })

/**
 * Makes a key unless there is one that this replica can sign with. A lock lets one replica at a
 * time check and insert, so that replicas with the same secret share the new key.
 */
export const ensureKey = (
  deps: KeyRingDeps,
  rows: KeyRows,
  purpose: SigningPurpose,
): Effect.Effect<void, PortError> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      yield* rows.lock(tx)
      const nowMs = deps.clock.nowMs()
      const there = (yield* rows.accepted(nowMs, tx)).filter((row) => row.purpose === purpose)
      if (there.some((row) => decryptPrivate(row, deps.secrets, nowMs) !== undefined)) return
      const row = yield* newRow(deps, purpose)
      yield* rows.insert(row, tx)
      const stranger = there.find(
        (other) => other.retires_at.getTime() > nowMs && other.sealed_by !== deps.secrets.keyId,
      )
      const fields = { purpose, kid: row.kid, signsUntil: row.retires_at.toISOString() }
      if (stranger)
        deps.log.warn(
          "signing_key.created_beside_unreadable",
          "a signing key was made beside one that is encrypted with another secret; give all servers the same RAKIT_SECRET_KEY to share one",
          fields,
        )
      else deps.log.info("signing_key.created", "a signing key was made", fields)
    }),
  )
