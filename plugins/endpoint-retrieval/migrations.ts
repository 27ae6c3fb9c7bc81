import { type Kysely, sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

// biome-ignore lint/suspicious/noExplicitAny: a migration knows no types
type AnyDb = Kysely<any>

const owned = sql.raw("account text NOT NULL, mode text NOT NULL CHECK (mode IN ('live', 'test'))")

const documents = async (db: AnyDb) => {
  await sql`
    CREATE TABLE retrieval_tenant (no bigserial NOT NULL UNIQUE, ${owned}, version bigint NOT NULL, PRIMARY KEY (account, mode))`.execute(
    db,
  )
  await sql`
    CREATE TABLE retrieval_document (
      no bigserial PRIMARY KEY,
      file_id text NOT NULL UNIQUE,
      ${owned},
      key_id text,
      state text NOT NULL CHECK (state IN ('waiting', 'extracting', 'embedding', 'ready', 'failed', 'removed')),
      epoch int NOT NULL DEFAULT 0,
      failures int NOT NULL DEFAULT 0,
      metadata jsonb NOT NULL DEFAULT '{}',
      pages int,
      characters bigint NOT NULL DEFAULT 0,
      chunks int NOT NULL DEFAULT 0,
      embedded int NOT NULL DEFAULT 0,
      tokens bigint NOT NULL DEFAULT 0,
      cost_micros bigint NOT NULL DEFAULT 0,
      space text,
      dimensions int,
      created_at timestamptz NOT NULL,
      expires_at timestamptz NOT NULL,
      removed_at timestamptz,
      CHECK ((state = 'removed') = (removed_at IS NOT NULL))
    )`.execute(db)
  await sql`CREATE INDEX retrieval_document_tenant ON retrieval_document (account, mode, state)`.execute(
    db,
  )
  await sql`CREATE INDEX retrieval_document_unfinished ON retrieval_document (no) WHERE state IN ('waiting', 'extracting', 'embedding')`.execute(
    db,
  )
  await sql`CREATE INDEX retrieval_document_removed ON retrieval_document (removed_at) WHERE removed_at IS NOT NULL`.execute(
    db,
  )
}

const chunks = async (db: AnyDb) => {
  await sql`
    CREATE TABLE retrieval_chunk (
      document_no bigint NOT NULL,
      idx int NOT NULL,
      page int,
      start_at int NOT NULL,
      end_at int NOT NULL,
      text text NOT NULL,
      words tsvector NOT NULL,
      PRIMARY KEY (document_no, idx)
    )`.execute(db)
  await sql`CREATE INDEX retrieval_chunk_words ON retrieval_chunk USING gin (words)`.execute(db)
  await sql`CREATE INDEX retrieval_chunk_page ON retrieval_chunk (document_no, page, idx) WHERE page IS NOT NULL`.execute(
    db,
  )
  await sql`
    CREATE TABLE retrieval_vector (
      document_no bigint NOT NULL,
      idx int NOT NULL,
      space text NOT NULL,
      vector bytea NOT NULL,
      PRIMARY KEY (document_no, space, idx)
    )`.execute(db)
  // a clause of CREATE TABLE only since PostgreSQL 16
  await sql`ALTER TABLE retrieval_vector ALTER COLUMN vector SET STORAGE MAIN`.execute(db)
}

export const migrations: Migrations = {
  "001-retrieval": {
    up: async (db) => {
      await documents(db)
      await chunks(db)
    },
  },
}
