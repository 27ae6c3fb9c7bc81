import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

export const migrations: Migrations = {
  "001-payload": {
    up: async (db) => {
      // text, not jsonb: the payload is returned as it was sent, also with \u0000 in it
      await sql`
        CREATE TABLE queue_payload (
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          job text NOT NULL,
          payload text NOT NULL,
          key text,
          priority int NOT NULL,
          attempts int NOT NULL DEFAULT 0,
          due_at timestamptz NOT NULL,
          lease uuid,
          error text,
          created_at timestamptz NOT NULL
        )`.execute(db)
      await sql`CREATE UNIQUE INDEX queue_payload_key ON queue_payload (job, key) WHERE key IS NOT NULL`.execute(
        db,
      )
      await sql`CREATE INDEX queue_payload_next ON queue_payload (job, priority DESC, due_at, id) WHERE lease IS NULL`.execute(
        db,
      )
      await sql`CREATE INDEX queue_payload_due ON queue_payload (job, due_at) WHERE lease IS NULL`.execute(
        db,
      )
      await sql`CREATE INDEX queue_payload_leased ON queue_payload (job, due_at) WHERE lease IS NOT NULL`.execute(
        db,
      )
      await sql`
        CREATE TABLE queue_dead_letter (
          id bigint PRIMARY KEY,
          job text NOT NULL,
          payload text NOT NULL,
          key text,
          attempts int NOT NULL,
          error text NOT NULL,
          created_at timestamptz NOT NULL,
          died_at timestamptz NOT NULL
        )`.execute(db)
      await sql`CREATE INDEX queue_dead_letter_died_at ON queue_dead_letter (died_at)`.execute(db)
    },
  },
}
