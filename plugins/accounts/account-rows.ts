import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Transaction } from "../../core/index.ts"
import type { AccountsTables, AccountTable } from "./tables.ts"

/** Queries on the accounts. */
export interface AccountRows {
  first(tx?: Transaction): Effect.Effect<AccountTable | undefined, PortError>
  /** `email` in the form of `parseEmail`. */
  byEmail(email: string): Effect.Effect<AccountTable | undefined, PortError>
  /** False when there is a first account already; waits for another server that is making one. */
  insertFirst(row: AccountTable & { readonly is_first: true }, tx: Transaction): Effect.Effect<boolean, PortError>
}

export const makeAccountRows = (database: Database): AccountRows => {
  const accounts = (tx?: Transaction) => database.queries<AccountsTables>(tx)
  return {
    first: (tx) => database.run(() => accounts(tx).selectFrom("accounts_account").selectAll().where("is_first", "=", true).executeTakeFirst()),
    byEmail: (email) => database.run(() => accounts().selectFrom("accounts_account").selectAll().where("email", "=", email).executeTakeFirst()),
    insertFirst: (row, tx) =>
      Effect.map(
        database.run(() =>
          accounts(tx)
            .insertInto("accounts_account")
            .values(row)
            .onConflict((conflict) => conflict.column("is_first").where(sql<boolean>`is_first`).doNothing())
            .returning("id")
            .executeTakeFirst(),
        ),
        (inserted) => inserted !== undefined,
      ),
  }
}
