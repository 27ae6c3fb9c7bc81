import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"
import { adminMigration } from "./admin/migration.ts"
import { auditMigration } from "./audit/migration.ts"
import { keyExpiryMigration, keyMigration } from "./keys/migration.ts"
import { sessionMigration } from "./sessions/migration.ts"

export const migrations: Migrations = {
  "001-account-and-key": {
    up: async (db) => {
      await sql`
        CREATE TABLE accounts_account (
          id text PRIMARY KEY,
          email text NOT NULL UNIQUE CHECK (email = lower(email)),
          password_hash text NOT NULL,
          role text NOT NULL CHECK (role IN ('user', 'admin')),
          is_first boolean NOT NULL DEFAULT false,
          verified_at timestamptz,
          suspended_at timestamptz,
          created_at timestamptz NOT NULL
        )`.execute(db)
      // two servers that start together: the second insert waits for the first one's commit, then finds the place taken
      await sql`CREATE UNIQUE INDEX accounts_account_first ON accounts_account (is_first) WHERE is_first`.execute(
        db,
      )
      await sql`
        CREATE TABLE accounts_key (
          id text PRIMARY KEY,
          account_id text NOT NULL REFERENCES accounts_account (id),
          name text NOT NULL,
          sha256 bytea NOT NULL UNIQUE CHECK (length(sha256) = 32),
          prefix text NOT NULL,
          mode text NOT NULL CHECK (mode IN ('live', 'test')),
          scopes text[] NOT NULL,
          rpm int NOT NULL CHECK (rpm >= 0),
          rpd int NOT NULL CHECK (rpd >= 0),
          concurrency int NOT NULL CHECK (concurrency >= 0),
          monthly_cap_micros bigint NOT NULL CHECK (monthly_cap_micros >= 0),
          created_at timestamptz NOT NULL,
          last_used_at timestamptz,
          revoked_at timestamptz
        )`.execute(db)
      await sql`CREATE INDEX accounts_key_account_id ON accounts_key (account_id, created_at)`.execute(
        db,
      )
    },
  },
  "002-sessions": sessionMigration,
  "003-audit": auditMigration,
  "004-keys": keyMigration,
  "005-admin": adminMigration,
  "006-key-expiry": keyExpiryMigration,
}
