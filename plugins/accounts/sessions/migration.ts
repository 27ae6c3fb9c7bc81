import { type Migration, sql } from "kysely"

/** Sessions, tokens in mails, and what counts toward rate limits. */
export const sessionMigration: Migration = {
  up: async (db) => {
    await sql`
      ALTER TABLE accounts_account
        ADD COLUMN locale text NOT NULL DEFAULT 'en' CHECK (locale IN ('en', 'id')),
        ADD COLUMN session_epoch int NOT NULL DEFAULT 1`.execute(db)
    await sql`
      CREATE TABLE accounts_token (
        sha256 bytea PRIMARY KEY CHECK (length(sha256) = 32),
        account_id text NOT NULL REFERENCES accounts_account (id),
        purpose text NOT NULL CHECK (purpose IN ('verify', 'reset')),
        created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        used_at timestamptz,
        voided_at timestamptz
      )`.execute(db)
    await sql`CREATE UNIQUE INDEX accounts_token_open ON accounts_token (account_id, purpose) WHERE used_at IS NULL AND voided_at IS NULL`.execute(
      db,
    )
    await sql`CREATE INDEX accounts_token_expires_at ON accounts_token (expires_at)`.execute(db)
    await sql`
      CREATE TABLE accounts_attempt (
        bucket bytea PRIMARY KEY CHECK (length(bucket) = 32),
        at_ms bigint[] NOT NULL,
        taken boolean NOT NULL,
        expires_at timestamptz NOT NULL
      )`.execute(db)
    await sql`CREATE INDEX accounts_attempt_expires_at ON accounts_attempt (expires_at)`.execute(db)
  },
}
