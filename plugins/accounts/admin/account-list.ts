import type { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"

/** The columns that an account's JSON is made of: a password's hash is never read for a list. */
const columns = ["id", "email", "role", "verified_at", "suspended_at", "created_at"] as const
export type ListedAccount = Pick<AccountTable, (typeof columns)[number]>

/** Newest first, with `q` in the e-mail; only what stands behind the account `after`. */
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

/** An id is found at once; looking into all e-mails takes its time when there are many. */
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
