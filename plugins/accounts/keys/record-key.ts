import { Effect } from "effect"
import { PortError, type Transaction } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import type { NewKey } from "../key-rows.ts"
import type { KeyRow } from "./key-store.ts"
import { makeKeyStore } from "./key-store.ts"
import { limitsJson, secondsOrNull } from "./to-key.ts"

export type RecordParts = Pick<AccountsDeps, "database" | "keys" | "audit" | "clock">

type InsertParts = Pick<RecordParts, "keys" | "audit">

/**
 * Stores a key and its audit record in one transaction. Returns false when the key is stored
 * already, for any account.
 */
export const insertKeyUnlessThere = (
  parts: InsertParts,
  actor: string,
  key: NewKey,
  tx: Transaction,
): Effect.Effect<boolean, PortError> =>
  Effect.gen(function* () {
    if (!(yield* parts.keys.insert(key, tx))) return false
    const {
      account,
      name,
      mode,
      limits,
      scopes = ["*"],
      playground = false,
      expiresMs,
      models,
    } = key
    const ends = expiresMs === undefined ? {} : { expires_at: Math.floor(expiresMs / 1000) }
    const after = {
      account,
      name,
      test: mode === "test",
      scopes,
      limits: limitsJson(limits),
      ...(playground && { playground }),
      ...(models && { models }),
      ...ends,
    }
    yield* parts.audit.record({ actor, action: "key.create", target: key.id, after }, tx)
    return true
  })

/** The same for a newly made key, which can't be stored already. */
export const insertKey = (
  parts: InsertParts,
  actor: string,
  key: NewKey,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.flatMap(insertKeyUnlessThere(parts, actor, key, tx), (isNew) =>
    isNew
      ? Effect.void
      : Effect.fail(new PortError({ port: "identity", message: "a new key is known already" })),
  )

/**
 * Revokes a key and returns its row; a revoked key stays as it is. Announce the change when `tx`
 * has committed.
 */
export const revokeRow = (
  deps: RecordParts,
  actor: string,
  row: KeyRow,
  tx: Transaction,
): Effect.Effect<KeyRow, PortError> =>
  Effect.gen(function* () {
    if (row.revoked_at !== null) return row
    const revoked = yield* makeKeyStore(deps.database).change(
      row.id,
      { revoked_at: new Date(deps.clock.nowMs()) },
      tx,
    )
    yield* deps.audit.record(
      {
        actor,
        action: "key.revoke",
        target: row.id,
        before: { revoked_at: null },
        after: { revoked_at: secondsOrNull(revoked.revoked_at) },
      },
      tx,
    )
    return revoked
  })

/** For keys of the playground. The caller announces the change. */
export const expireRow = (
  deps: RecordParts,
  actor: string,
  row: KeyRow,
  tx: Transaction,
): Effect.Effect<KeyRow, PortError> =>
  Effect.gen(function* () {
    const expired = yield* makeKeyStore(deps.database).change(
      row.id,
      { expires_at: new Date(deps.clock.nowMs()) },
      tx,
    )
    yield* deps.audit.record(
      {
        actor,
        action: "key.expire",
        target: row.id,
        before: { expires_at: secondsOrNull(row.expires_at) },
        after: { expires_at: secondsOrNull(expired.expires_at) },
      },
      tx,
    )
    return expired
  })
