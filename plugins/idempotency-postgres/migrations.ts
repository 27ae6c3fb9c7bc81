import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

export const migrations: Migrations = {
  "001-key": {
    up: async (db) => {
      await sql`
        CREATE TABLE idempotency_key (
          account text NOT NULL,
          mode text NOT NULL CHECK (mode IN ('live', 'test')),
          key text NOT NULL,
          fingerprint text NOT NULL,
          attempt uuid NOT NULL,
          state text NOT NULL CHECK (state IN ('running', 'done')),
          lease_until timestamptz NOT NULL,
          expires_at timestamptz NOT NULL,
          status int,
          reply text,
          PRIMARY KEY (account, mode, key),
          CHECK ((state = 'done') = (status IS NOT NULL AND reply IS NOT NULL))
        )`.execute(db)
      await sql`CREATE INDEX idempotency_key_expires_at ON idempotency_key (expires_at)`.execute(db)
    },
  },
  "002-sealed-reply": {
    up: async (db) => {
      await sql`ALTER TABLE idempotency_key ADD COLUMN sealed_by text, ADD COLUMN call_id text`.execute(
        db,
      )
    },
  },
}
