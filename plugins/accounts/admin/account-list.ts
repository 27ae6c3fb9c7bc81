import type { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"

/** The columns that the JSON of an account needs: lists never read password hashes. */
const columns = ["id", "email", "role", "verified_at", "suspended_at", "created_at"] as const
export type ListedAccount = Pick<AccountTable, (typeof columns)[number]>

/** Newest first, with `q` in the e-mail address; only accounts behind `after`. */
export const listAccounts = (
  database: Database,
  q: string | undefined,
  limit: number,
  after: string | undefined,
): Effect.Effect<readonly ListedAccount[], PortError> =>
  database.run(() => {
    let query = database
      .queries<AccountsTables>()
      .selectFrom("accounts_account")
      .select(columns)
      .orderBy("created_at", "desc")
      .orderBy("id", "desc")
      .limit(limit)
    if (q !== undefined) {
      const pattern = `%${q.toLowerCase().replace(/[\\%_]/g, "\\$&")}%`
      query = query.where("email", "like", pattern)
    }
    if (after !== undefined)
      query = query.where(
        sql<boolean>`(created_at, id) < (SELECT created_at, id FROM accounts_account WHERE id = ${after})`,
      )
    return query.execute()
  })

/**
 * An id is found by its index; searching e-mail addresses scans all of them, which is slow when
 * there are many.
 */
export const findAccount = (
  database: Database,
  id: string,
): Effect.Effect<ListedAccount | undefined, PortError> =>
  database.run(() =>
    database
      .queries<AccountsTables>()
      .selectFrom("accounts_account")
      .select(columns)
      .where("id", "=", id)
      .executeTakeFirst(),
  )
