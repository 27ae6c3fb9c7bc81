import { type Migration, sql } from "kysely"

/** For the list of accounts, newest first. */
export const adminMigration: Migration = {
  up: async (db) => {
    await sql`CREATE INDEX accounts_account_list ON accounts_account (created_at, id)`.execute(db)
  },
}
