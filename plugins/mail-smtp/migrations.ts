import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

export const migrations: Migrations = {
  "001-outbox": {
    up: async (db) => {
      await sql`
        CREATE TABLE mail_outbox (
          id uuid PRIMARY KEY,
          state text NOT NULL CHECK (state IN ('waiting', 'given_up')),
          content text,
          sealed_by text NOT NULL,
          attempts int NOT NULL DEFAULT 0,
          due_at timestamptz NOT NULL,
          created_at timestamptz NOT NULL,
          CHECK ((state = 'waiting') = (content IS NOT NULL))
        )`.execute(db)
      await sql`CREATE INDEX mail_outbox_due ON mail_outbox (sealed_by, due_at) WHERE state = 'waiting'`.execute(
        db,
      )
      await sql`CREATE INDEX mail_outbox_created_at ON mail_outbox (created_at)`.execute(db)
    },
  },
}
