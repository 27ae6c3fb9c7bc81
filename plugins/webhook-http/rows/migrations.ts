import { sql } from "kysely"
import type { Migrations } from "../../../core/index.ts"

export const migrations: Migrations = {
  "001-webhook": {
    up: async (db) => {
      await sql`
        CREATE TABLE webhook_registration (
          seq bigint GENERATED ALWAYS AS IDENTITY,
          id text PRIMARY KEY,
          account text NOT NULL,
          mode text NOT NULL CHECK (mode IN ('live', 'test')),
          url text NOT NULL,
          events text[] NOT NULL,
          description text,
          status text NOT NULL CHECK (status IN ('active', 'disabled')),
          secret text NOT NULL,
          old_secret text,
          old_secret_until timestamptz,
          created_at timestamptz NOT NULL,
          last_delivery_at timestamptz,
          last_error text,
          failing_since timestamptz
        )`.execute(db)
      await sql`CREATE INDEX webhook_registration_tenant ON webhook_registration (account, mode, seq)`.execute(
        db,
      )
      // bodies and attempts are text: they come back byte by byte, also with \u0000 in them
      await sql`
        CREATE TABLE webhook_delivery (
          seq bigint GENERATED ALWAYS AS IDENTITY,
          id text PRIMARY KEY,
          webhook_id text NOT NULL,
          event text NOT NULL,
          body text NOT NULL,
          state text NOT NULL CHECK (state IN ('pending', 'succeeded', 'giveup')),
          once boolean NOT NULL,
          round int NOT NULL,
          tries int NOT NULL,
          round_at timestamptz NOT NULL,
          next_attempt_at timestamptz,
          attempts text NOT NULL DEFAULT '[]',
          created_at timestamptz NOT NULL,
          CHECK ((state = 'pending') = (next_attempt_at IS NOT NULL))
        )`.execute(db)
      await sql`CREATE INDEX webhook_delivery_webhook ON webhook_delivery (webhook_id, seq)`.execute(
        db,
      )
      await sql`CREATE INDEX webhook_delivery_pending ON webhook_delivery (next_attempt_at) WHERE state = 'pending'`.execute(
        db,
      )
      await sql`CREATE INDEX webhook_delivery_created ON webhook_delivery (created_at)`.execute(db)
    },
  },
}
