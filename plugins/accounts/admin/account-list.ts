import type { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"
import { shownColumns } from "../to-account.ts"

export type ListedAccount = Pick<AccountTable, (typeof shownColumns)[number]>

export const accountStates = ["all", "active", "unverified", "suspended", "admin"] as const

export interface AccountFilter {
  /** A part of the e-mail address. */
  readonly q: string | undefined
  readonly state: (typeof accountStates)[number]
}

const conditions = {
  all: sql<boolean>`true`,
  active: sql<boolean>`verified_at IS NOT NULL AND suspended_at IS NULL AND deleted_at IS NULL`,
  unverified: sql<boolean>`verified_at IS NULL AND deleted_at IS NULL`,
  suspended: sql<boolean>`suspended_at IS NOT NULL`,
  admin: sql<boolean>`role = 'admin'`,
} as const

/** Newest first; only accounts behind `after`. */
export const listAccounts = (
  database: Database,
  { q, state }: AccountFilter,
  limit: number,
  after: string | undefined,
): Effect.Effect<readonly ListedAccount[], PortError> =>
  database.run(() => {
    let query = database
      .queries<AccountsTables>()
      .selectFrom("accounts_account")
      .select(shownColumns)
      .orderBy("created_at", "desc")
      .orderBy("id", "desc")
      .where(conditions[state])
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
 * Ids are found by their index; searching e-mail addresses scans all of them, which is slow when
 * there are many.
 */
export const findAccounts = (
  database: Database,
  ids: readonly string[],
): Effect.Effect<readonly ListedAccount[], PortError> =>
  database.run(() =>
    database
      .queries<AccountsTables>()
      .selectFrom("accounts_account")
      .select(shownColumns)
      .where("id", "in", ids)
      .execute(),
  )
