import { Effect } from "effect"
import { sql } from "kysely"
import type { Caller, Database, Limits, PortError, Transaction } from "../../core/index.ts"
import { displayPrefix, type KeyMode, sha256Of } from "./api-key.ts"
import { type KeyChanges, makeKeyChanges } from "./key-changes.ts"
import type { AccountsTables } from "./tables.ts"

/** A key with the state of its account: everything that decides whether it is accepted. */
export interface KeyRecord {
  readonly id: string
  readonly caller: Caller
  readonly revoked: boolean
  readonly verified: boolean
  readonly suspended: boolean
  readonly lastUsedMs: number
  /** Infinity for a key that does not expire. */
  readonly expiresMs: number
  /** A temporary key of the web app: what it began goes on when it has expired. */
  readonly playground: boolean
  /** The session of an administrator who sees the account: the key goes with it. */
  readonly session?: { readonly id: string; readonly actor: string | null }
}

export interface NewKey {
  readonly id: string
  readonly account: string
  readonly name: string
  /** The key itself; only its SHA-256 and its first characters are stored. */
  readonly key: string
  readonly mode: KeyMode
  readonly limits: Limits
  readonly createdMs: number
  /** All endpoints by default. */
  readonly scopes?: readonly string[]
  readonly expiresMs?: number
  readonly playground?: boolean
  /** All by default. */
  readonly models?: readonly string[]
  /** For an administrator who sees the account: it only reads, and goes with that session. */
  readonly session?: string
}

/** Queries on `accounts_key`. */
export interface KeyRows {
  bySha256(hex: string): Effect.Effect<KeyRecord | undefined, PortError>
  byId(id: string): Effect.Effect<KeyRecord | undefined, PortError>
  /** Returns false when the key is stored already, for any account. */
  insert(key: NewKey, tx?: Transaction): Effect.Effect<boolean, PortError>
  /**
   * Moves `last_used_at` forward, if by at least a minute. Skips rows that another server is
   * writing.
   */
  markUsed(uses: ReadonlyMap<string, number>): Effect.Effect<void, PortError>
  /** Announce changes of keys and of accounts here. */
  readonly changes: KeyChanges
}

const keyWithAccount = (database: Database) =>
  database
    .queries<AccountsTables>()
    .selectFrom("accounts_key as k")
    .innerJoin("accounts_account as a", "a.id", "k.account_id")
    .leftJoin("accounts_session as s", "s.id", "k.session_id")
    .select(["k.session_id", "s.actor_id"])
    .select([
      "k.id",
      "k.account_id",
      "k.mode",
      "k.scopes",
      "k.models",
      "k.rpm",
      "k.rpd",
      "k.concurrency",
      "k.monthly_cap_micros",
      "k.body_mb",
      "k.last_used_at",
      "k.revoked_at",
      "k.expires_at",
      "k.playground",
    ])
    .select(["a.role", "a.verified_at", "a.suspended_at"])

type Row = Awaited<ReturnType<ReturnType<typeof keyWithAccount>["executeTakeFirstOrThrow"]>>

const recordOf = (row: Row): KeyRecord => ({
  id: row.id,
  caller: {
    tenant: { account: row.account_id, mode: row.mode },
    keyId: row.id,
    scopes: row.scopes,
    ...(row.models && { models: row.models }),
    role: row.session_id === null ? row.role : "user",
    ...(row.session_id !== null && { readOnly: "read_only_session" }),
    limits: {
      rpm: row.rpm,
      rpd: row.rpd,
      concurrency: row.concurrency,
      monthlyCapMicros: BigInt(row.monthly_cap_micros),
      bodyMb: row.body_mb,
    },
  },
  revoked: row.revoked_at !== null,
  verified: row.verified_at !== null,
  suspended: row.suspended_at !== null,
  lastUsedMs: row.last_used_at?.getTime() ?? Number.NEGATIVE_INFINITY,
  expiresMs: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  playground: row.playground,
  ...(row.session_id !== null && { session: { id: row.session_id, actor: row.actor_id } }),
})

const rowOf = ({
  id,
  account,
  name,
  key,
  mode,
  limits,
  createdMs,
  scopes = ["*"],
  expiresMs,
  playground = false,
  models,
  session,
}: NewKey) => ({
  id,
  account_id: account,
  name,
  sha256: sha256Of(key),
  prefix: displayPrefix(key),
  mode,
  scopes,
  rpm: limits.rpm,
  rpd: limits.rpd,
  concurrency: limits.concurrency,
  monthly_cap_micros: limits.monthlyCapMicros,
  body_mb: limits.bodyMb,
  created_at: new Date(createdMs),
  last_used_at: null,
  revoked_at: null,
  expires_at: expiresMs === undefined ? null : new Date(expiresMs),
  playground,
  models: models ?? null,
  session_id: session ?? null,
})

export const makeKeyRows = (database: Database): KeyRows => {
  const take = (query: () => ReturnType<typeof keyWithAccount>) =>
    Effect.map(
      database.run(() => query().executeTakeFirst()),
      (row) => row && recordOf(row),
    )
  return {
    changes: makeKeyChanges(),
    bySha256: (hex) =>
      take(() => keyWithAccount(database).where("k.sha256", "=", Buffer.from(hex, "hex"))),
    byId: (id) => take(() => keyWithAccount(database).where("k.id", "=", id)),
    insert: (key, tx) =>
      Effect.map(
        database.run(() =>
          database
            .queries<AccountsTables>(tx)
            .insertInto("accounts_key")
            .values(rowOf(key))
            .onConflict((conflict) => conflict.column("sha256").doNothing())
            .returning("id")
            .executeTakeFirst(),
        ),
        (inserted) => inserted !== undefined,
      ),
    markUsed: (uses) =>
      Effect.asVoid(
        database.run(() =>
          sql`
            WITH due AS (
              SELECT k.id, use.at FROM accounts_key k JOIN unnest(${[...uses.keys()]}::text[], ${[...uses.values()].map((ms) => new Date(ms))}::timestamptz[]) AS use (id, at) ON use.id = k.id
              WHERE k.last_used_at IS NULL OR k.last_used_at <= use.at - interval '1 minute'
              FOR UPDATE OF k SKIP LOCKED)
            UPDATE accounts_key SET last_used_at = due.at FROM due WHERE accounts_key.id = due.id`.execute(
            database.queries<AccountsTables>(),
          ),
        ),
      ),
  }
}
