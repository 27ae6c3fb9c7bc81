import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

export const migrations: Migrations = {
  "001-signing-key": {
    up: async (db) => {
      await sql`
        CREATE TABLE signing_key (
          kid text PRIMARY KEY,
          purpose text NOT NULL CHECK (purpose IN ('session', 'receipt')),
          public_jwk jsonb NOT NULL,
          private_jwk text,
          sealed_by text NOT NULL,
          created_at timestamptz NOT NULL,
          retires_at timestamptz NOT NULL,
          accepted_until timestamptz CHECK (accepted_until > retires_at)
        )`.execute(db)
    },
  },
}
