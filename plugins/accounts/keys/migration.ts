import { type Migration, sql } from "kysely"

/** `seq` orders keys that were made in one millisecond; a key of the web app's playground ends by itself and is on no list. */
export const keyMigration: Migration = {
  up: async (db) => {
    await sql`
      ALTER TABLE accounts_key
        ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY,
        ADD COLUMN expires_at timestamptz,
        ADD COLUMN playground boolean NOT NULL DEFAULT false`.execute(db)
    await sql`CREATE INDEX accounts_key_list ON accounts_key (account_id, seq) WHERE NOT playground`.execute(
      db,
    )
    await sql`CREATE INDEX accounts_key_playground ON accounts_key (account_id, seq) WHERE playground AND revoked_at IS NULL`.execute(
      db,
    )
    await sql`DROP INDEX accounts_key_account_id`.execute(db)
  },
}

/** Keys that end by themselves are swept. */
export const keyExpiryMigration: Migration = {
  up: async (db) => {
    await sql`CREATE INDEX accounts_key_expires_at ON accounts_key (expires_at) WHERE expires_at IS NOT NULL`.execute(
      db,
    )
  },
}
