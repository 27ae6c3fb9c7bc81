import { type Kysely, sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

// biome-ignore lint/suspicious/noExplicitAny: a migration knows no types
type AnyDb = Kysely<any>

const owned = sql.raw("account text NOT NULL, mode text NOT NULL CHECK (mode IN ('live', 'test'))")

const file = async (db: AnyDb) => {
  await sql`
    CREATE TABLE files_file (
      id text PRIMARY KEY,
      seq bigserial NOT NULL,
      ${owned},
      filename text NOT NULL,
      purpose text NOT NULL CHECK (purpose IN ('batch_input', 'knowledge', 'batch_output', 'batch_error')),
      status text NOT NULL CHECK (status IN ('uploaded', 'processing', 'processed', 'failed', 'deleted')),
      status_details text,
      bytes bigint NOT NULL CHECK (bytes >= 0),
      counted boolean NOT NULL,
      blob_key text NOT NULL UNIQUE,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      deleted_at timestamptz,
      CHECK ((status = 'deleted') = (deleted_at IS NOT NULL))
    )`.execute(db)
  await sql`CREATE INDEX files_file_list ON files_file (account, mode, seq)`.execute(db)
  await sql`CREATE INDEX files_file_expires_at ON files_file (expires_at) WHERE deleted_at IS NULL`.execute(
    db,
  )
  await sql`CREATE INDEX files_file_deleted_at ON files_file (deleted_at) WHERE deleted_at IS NOT NULL`.execute(
    db,
  )
}

const blobs = async (db: AnyDb) => {
  await sql`
    CREATE TABLE files_incoming (
      id text PRIMARY KEY, ${owned}, blob_key text NOT NULL UNIQUE, held_bytes bigint NOT NULL CHECK (held_bytes >= 0), lease_until timestamptz NOT NULL
    )`.execute(db)
  await sql`CREATE INDEX files_incoming_lease ON files_incoming (lease_until)`.execute(db)
  await sql`CREATE TABLE files_usage (${owned}, bytes bigint NOT NULL CHECK (bytes >= 0), files bigint NOT NULL CHECK (files >= 0), PRIMARY KEY (account, mode))`.execute(
    db,
  )
  await sql`CREATE TABLE files_trash (blob_key text PRIMARY KEY, due_at timestamptz NOT NULL)`.execute(
    db,
  )
  await sql`CREATE INDEX files_trash_due_at ON files_trash (due_at)`.execute(db)
}

const upload = async (db: AnyDb) => {
  await sql`
    CREATE TABLE files_upload (
      id text PRIMARY KEY,
      ${owned},
      filename text NOT NULL,
      purpose text NOT NULL CHECK (purpose IN ('batch_input', 'knowledge')),
      bytes bigint NOT NULL CHECK (bytes > 0),
      keep_ms bigint NOT NULL,
      status text NOT NULL CHECK (status IN ('pending', 'completed', 'cancelled', 'expired')),
      completing text,
      file_id text,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      CHECK ((status = 'completed') = (file_id IS NOT NULL))
    )`.execute(db)
  await sql`CREATE INDEX files_upload_expires_at ON files_upload (expires_at)`.execute(db)
  await sql`CREATE TABLE files_part (id text PRIMARY KEY, upload_id text NOT NULL, bytes bigint NOT NULL, blob_key text NOT NULL UNIQUE, created_at timestamptz NOT NULL)`.execute(
    db,
  )
  await sql`CREATE INDEX files_part_upload ON files_part (upload_id)`.execute(db)
}

export const migrations: Migrations = {
  "001-files": {
    up: async (db) => {
      await file(db)
      await blobs(db)
      await upload(db)
    },
  },
  "002-status-of-uploads": {
    up: async (db) => {
      await sql`ALTER TABLE files_upload ADD COLUMN file_status text NOT NULL DEFAULT 'uploaded'`.execute(
        db,
      )
      await sql`UPDATE files_file SET status = 'processed' WHERE purpose IN ('batch_output', 'batch_error') AND status = 'uploaded'`.execute(
        db,
      )
    },
  },
  "003-ingest": {
    up: async (db) => {
      await sql`ALTER TABLE files_file ADD COLUMN progress jsonb, ADD COLUMN key_id text, ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}', ADD COLUMN observed boolean NOT NULL DEFAULT false`.execute(
        db,
      )
      await sql`CREATE INDEX files_file_unobserved ON files_file (seq) WHERE purpose = 'knowledge' AND NOT observed AND deleted_at IS NULL`.execute(
        db,
      )
      await sql`ALTER TABLE files_upload ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}'`.execute(
        db,
      )
    },
  },
}
