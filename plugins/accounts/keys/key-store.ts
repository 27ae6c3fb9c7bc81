import { Effect } from "effect"
import type { Selectable, Updateable } from "kysely"
import type { Database, PortError, Transaction } from "../../../core/index.ts"
import type { AccountsTables } from "../tables.ts"

export type KeyRow = Selectable<AccountsTables["accounts_key"]>
export type KeyRowChanges = Pick<
  Updateable<AccountsTables["accounts_key"]>,
  | "name"
  | "scopes"
  | "models"
  | "expires_at"
  | "rpm"
  | "rpd"
  | "concurrency"
  | "monthly_cap_micros"
  | "body_mb"
  | "revoked_at"
>

/** The keys as their owner sees them: looked up by account. */
export interface KeyStore {
  /** Newest first, without keys of the playground; only keys older than `before`. */
  list(account: string, limit: number, before?: string): Effect.Effect<readonly KeyRow[], PortError>
  /** Returns the position of a key on that list, for `before`. */
  place(account: string, id: string): Effect.Effect<string | undefined, PortError>
  /** Locks the key until `tx` ends. */
  lock(account: string, id: string, tx: Transaction): Effect.Effect<KeyRow | undefined, PortError>
  change(id: string, changes: KeyRowChanges, tx: Transaction): Effect.Effect<KeyRow, PortError>
  get(id: string, tx?: Transaction): Effect.Effect<KeyRow | undefined, PortError>
  /** Returns the number of keys on the list that are not revoked. */
  countActive(account: string, tx: Transaction): Effect.Effect<number, PortError>
  /** Returns the keys of the playground that are valid at that time, oldest first. */
  playground(
    account: string,
    nowMs: number,
    tx: Transaction,
  ): Effect.Effect<readonly KeyRow[], PortError>
}

export const makeKeyStore = (database: Database): KeyStore => {
  const keys = (tx?: Transaction) => database.queries<AccountsTables>(tx).selectFrom("accounts_key")
  const listed = (account: string) =>
    keys().where("account_id", "=", account).where("playground", "=", false)
  return {
    list: (account, limit, before) =>
      database.run(() => {
        const newest = listed(account).selectAll().orderBy("seq", "desc").limit(limit)
        return (before === undefined ? newest : newest.where("seq", "<", before)).execute()
      }),
    place: (account, id) =>
      Effect.map(
        database.run(() => listed(account).select("seq").where("id", "=", id).executeTakeFirst()),
        (row) => row && String(row.seq),
      ),
    lock: (account, id, tx) =>
      database.run(() =>
        keys(tx)
          .selectAll()
          .where("account_id", "=", account)
          .where("id", "=", id)
          .forUpdate()
          .executeTakeFirst(),
      ),
    change: (id, changes, tx) =>
      database.run(() =>
        database
          .queries<AccountsTables>(tx)
          .updateTable("accounts_key")
          .set(changes)
          .where("id", "=", id)
          .returningAll()
          .executeTakeFirstOrThrow(),
      ),
    get: (id, tx) =>
      database.run(() => keys(tx).selectAll().where("id", "=", id).executeTakeFirst()),
    countActive: (account, tx) =>
      Effect.map(
        database.run(() =>
          keys(tx)
            .select(({ fn }) => fn.countAll().as("n"))
            .where("account_id", "=", account)
            .where("playground", "=", false)
            .where("revoked_at", "is", null)
            .executeTakeFirstOrThrow(),
        ),
        ({ n }) => Number(n),
      ),
    playground: (account, nowMs, tx) =>
      database.run(() =>
        keys(tx)
          .selectAll()
          .where("account_id", "=", account)
          .where("playground", "=", true)
          .where("session_id", "is", null)
          .where("revoked_at", "is", null)
          .where("expires_at", ">", new Date(nowMs))
          .orderBy("seq")
          .execute(),
      ),
  }
}
