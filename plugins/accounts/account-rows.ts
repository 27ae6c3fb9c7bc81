import { Effect } from "effect"
import type { Insertable, Updateable } from "kysely"
import type { Database, PortError, Transaction } from "../../core/index.ts"
import type { AccountsTables, AccountTable } from "./tables.ts"

export type NewAccount = Insertable<AccountsTables["accounts_account"]>
export type AccountChanges = Omit<Updateable<AccountsTables["accounts_account"]>, "id">

/** Queries on `accounts_account`. */
export interface AccountRows {
  first(tx?: Transaction): Effect.Effect<AccountTable | undefined, PortError>
  /** `email` as returned by `parseEmail`. */
  byEmail(email: string, tx?: Transaction): Effect.Effect<AccountTable | undefined, PortError>
  byId(id: string, tx?: Transaction): Effect.Effect<AccountTable | undefined, PortError>
  /** Locks the account until `tx` ends. */
  lock(id: string, tx: Transaction): Effect.Effect<AccountTable | undefined, PortError>
  /**
   * Returns false when there is a first account already; waits for another server that is making
   * one.
   */
  insertFirst(
    row: NewAccount & { readonly is_first: true },
    tx: Transaction,
  ): Effect.Effect<boolean, PortError>
  /** Returns false when the e-mail address has an account. */
  insert(row: NewAccount, tx: Transaction): Effect.Effect<boolean, PortError>
  /** Returns the changed row; undefined when there is none. */
  change(
    id: string,
    changes: AccountChanges,
    tx: Transaction,
  ): Effect.Effect<AccountTable | undefined, PortError>
}

const isThere = (row: object | undefined): boolean => row !== undefined

export const makeAccountRows = (database: Database): AccountRows => {
  const accounts = (tx?: Transaction) => database.queries<AccountsTables>(tx)
  const from = (tx?: Transaction) => accounts(tx).selectFrom("accounts_account").selectAll()
  const insert = (row: NewAccount, tx: Transaction) =>
    accounts(tx).insertInto("accounts_account").values(row).returning("id")
  return {
    first: (tx) => database.run(() => from(tx).where("is_first", "=", true).executeTakeFirst()),
    byEmail: (email, tx) =>
      database.run(() => from(tx).where("email", "=", email).executeTakeFirst()),
    byId: (id, tx) => database.run(() => from(tx).where("id", "=", id).executeTakeFirst()),
    lock: (id, tx) =>
      database.run(() => from(tx).where("id", "=", id).forNoKeyUpdate().executeTakeFirst()),
    insertFirst: (row, tx) =>
      Effect.map(
        database.run(() =>
          insert(row, tx)
            // no column: when two servers start at once with one address, either unique index may
            // refuse the second
            .onConflict((conflict) => conflict.doNothing())
            .executeTakeFirst(),
        ),
        isThere,
      ),
    insert: (row, tx) =>
      Effect.map(
        database.run(() =>
          insert(row, tx)
            .onConflict((conflict) => conflict.column("email").doNothing())
            .executeTakeFirst(),
        ),
        isThere,
      ),
    change: (id, changes, tx) =>
      database.run(() =>
        accounts(tx)
          .updateTable("accounts_account")
          .set(changes)
          .where("id", "=", id)
          .returningAll()
          .executeTakeFirst(),
      ),
  }
}
