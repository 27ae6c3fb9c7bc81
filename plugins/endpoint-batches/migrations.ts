import { type Kysely, sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

// biome-ignore lint/suspicious/noExplicitAny: a migration knows no types
type AnyDb = Kysely<any>

const batch = async (db: AnyDb) => {
  await sql`
    CREATE TABLE batches_batch (
      id text PRIMARY KEY,
      seq bigserial NOT NULL,
      account text NOT NULL,
      mode text NOT NULL CHECK (mode IN ('live', 'test')),
      key_id text NOT NULL,
      endpoint text NOT NULL,
      status text NOT NULL CHECK (status IN ('validating', 'in_progress', 'completed', 'failed', 'cancelled', 'expired')),
      input_file_id text NOT NULL,
      output_file_id text,
      error_file_id text,
      metadata jsonb,
      errors jsonb,
      total integer NOT NULL DEFAULT 0,
      completed integer NOT NULL DEFAULT 0,
      failed integer NOT NULL DEFAULT 0,
      cost_micros bigint NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
      epoch integer NOT NULL DEFAULT 0,
      lease_until timestamptz,
      done_through integer NOT NULL DEFAULT 0,
      done_offset bigint NOT NULL DEFAULT 0,
      created_at timestamptz NOT NULL,
      in_progress_at timestamptz,
      ended_at timestamptz,
      deadline_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      CHECK (completed >= 0 AND failed >= 0 AND completed + failed <= total),
      CHECK ((ended_at IS NOT NULL) = (status NOT IN ('validating', 'in_progress')))
    )`.execute(db)
  await sql`CREATE INDEX batches_batch_list ON batches_batch (account, mode, seq)`.execute(db)
  await sql`CREATE INDEX batches_batch_open ON batches_batch (seq) WHERE ended_at IS NULL`.execute(
    db,
  )
}

const results = async (db: AnyDb) => {
  await sql`CREATE TABLE batches_line (batch_id text NOT NULL, line integer NOT NULL, ok boolean NOT NULL, body text NOT NULL, PRIMARY KEY (batch_id, line))`.execute(
    db,
  )
  // answers are read back once, soon: compression is not worth it
  await sql`ALTER TABLE batches_line ALTER COLUMN body SET STORAGE EXTERNAL`.execute(db)
  await sql`
    CREATE TABLE batches_part (
      batch_id text NOT NULL,
      kind text NOT NULL CHECK (kind IN ('output', 'error')),
      part integer NOT NULL,
      blob_key text NOT NULL UNIQUE,
      bytes bigint NOT NULL,
      PRIMARY KEY (batch_id, kind, part)
    )`.execute(db)
}

export const migrations: Migrations = {
  "001-batches": {
    up: async (db) => {
      await batch(db)
      await results(db)
    },
  },
}
