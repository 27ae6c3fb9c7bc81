import { type Migration, sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

const accountAndKeyMigration: Migration = {
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
    // when two servers start together, the second insert waits for the commit of the first, then
    // conflicts
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
}

/** Sessions, mailed tokens, and the attempts that rate limits count. */
const sessionMigration: Migration = {
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

/**
 * `seq` orders entries of one millisecond. `json` and not `jsonb`, which refuses \u0000 and single
 * surrogates; both occur in names.
 */
const auditMigration: Migration = {
  up: async (db) => {
    await sql`
      CREATE TABLE accounts_audit (
        id text PRIMARY KEY,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        actor text NOT NULL,
        action text NOT NULL,
        target text NOT NULL,
        before json,
        after json,
        created_at timestamptz NOT NULL
      )`.execute(db)
    await sql`CREATE INDEX accounts_audit_at ON accounts_audit (created_at, seq)`.execute(db)
    for (const column of ["actor", "action", "target"])
      await sql`CREATE INDEX ${sql.id(`accounts_audit_${column}`)} ON accounts_audit (${sql.id(column)}, created_at, seq)`.execute(
        db,
      )
    await sql`
      CREATE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'accounts_audit is append-only';
      END $$`.execute(db)
    await sql`
      CREATE TRIGGER accounts_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON accounts_audit
      FOR EACH STATEMENT EXECUTE FUNCTION accounts_audit_append_only()`.execute(db)
  },
}

/**
 * `seq` orders keys of one millisecond. Keys of the web app's playground expire and are on no list.
 */
const keyMigration: Migration = {
  up: async (db) => {
    await sql`
      ALTER TABLE accounts_key
        ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY,
        ADD COLUMN expires_at timestamptz,
        ADD COLUMN playground boolean NOT NULL DEFAULT false`.execute(db)
    await sql`CREATE INDEX accounts_key_list ON accounts_key (account_id, seq) WHERE NOT playground`.execute(
      db,
    )
    await sql`CREATE INDEX accounts_key_playground ON accounts_key (account_id, seq) WHERE playground AND revoked_at IS NULL`.execute(
      db,
    )
    await sql`DROP INDEX accounts_key_account_id`.execute(db)
  },
}

/** For the sweep of expired keys. */
const keyExpiryMigration: Migration = {
  up: async (db) => {
    await sql`CREATE INDEX accounts_key_expires_at ON accounts_key (expires_at) WHERE expires_at IS NOT NULL`.execute(
      db,
    )
  },
}

/** For the list of accounts, newest first. */
const adminMigration: Migration = {
  up: async (db) => {
    await sql`CREATE INDEX accounts_account_list ON accounts_account (created_at, id)`.execute(db)
  },
}

/** Keys that were made before have the default; so do those of a server of the version before. */
const bodyLimitMigration: Migration = {
  up: async (db) => {
    await sql`ALTER TABLE accounts_key ADD COLUMN body_mb int NOT NULL DEFAULT 50 CHECK (body_mb >= 1)`.execute(
      db,
    )
  },
}

/** A changed address is confirmed by a mail to it. A deleted account keeps its row for the ledger. */
const ownAccountMigration: Migration = {
  up: async (db) => {
    await sql`
      ALTER TABLE accounts_token
        DROP CONSTRAINT accounts_token_purpose_check,
        ADD CONSTRAINT accounts_token_purpose_check CHECK (purpose IN ('verify', 'reset', 'email')),
        ADD COLUMN email text`.execute(db)
    await sql`ALTER TABLE accounts_account ADD COLUMN deleted_at timestamptz`.execute(db)
  },
}

/** Null: all models, as keys that were made before may use. */
const keyModelsMigration: Migration = {
  up: async (db) => {
    await sql`ALTER TABLE accounts_key ADD COLUMN models text[]`.execute(db)
  },
}

/** A second factor for sign-in, mails about a low balance, and payments that were booked. */
const paymentsMigration: Migration = {
  up: async (db) => {
    await sql`
      ALTER TABLE accounts_account
        ADD COLUMN totp_secret text,
        ADD COLUMN totp_since timestamptz,
        ADD COLUMN totp_last_step bigint,
        ADD COLUMN recovery_sha256 bytea[] NOT NULL DEFAULT '{}',
        ADD COLUMN low_balance_micros bigint CHECK (low_balance_micros > 0),
        ADD COLUMN low_balance_mailed_at timestamptz`.execute(db)
    await sql`CREATE INDEX accounts_account_low_balance ON accounts_account (id) WHERE low_balance_micros IS NOT NULL`.execute(
      db,
    )
    // who has spent lately
    await sql`CREATE INDEX accounts_key_used ON accounts_key (account_id, last_used_at)`.execute(db)
    await sql`
      CREATE TABLE accounts_top_up (
        id text PRIMARY KEY,
        account_id text NOT NULL REFERENCES accounts_account (id),
        amount_micros bigint NOT NULL CHECK (amount_micros > 0),
        created_at timestamptz NOT NULL
      )`.execute(db)
  },
}

/**
 * The open sessions; tokens that were signed before have no row. `actor_id`: an administrator who
 * sees the account, `parent_id`: in which session. A key that was made for that goes with it.
 */
const sessionListMigration: Migration = {
  up: async (db) => {
    await sql`
      CREATE TABLE accounts_session (
        id text PRIMARY KEY,
        account_id text NOT NULL REFERENCES accounts_account (id),
        epoch int NOT NULL,
        created_at timestamptz NOT NULL,
        last_seen_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        browser text,
        os text,
        address text,
        actor_id text REFERENCES accounts_account (id),
        parent_id text REFERENCES accounts_session (id) ON DELETE CASCADE
      )`.execute(db)
    await sql`CREATE INDEX accounts_session_account_id ON accounts_session (account_id)`.execute(db)
    await sql`CREATE INDEX accounts_session_actor_id ON accounts_session (actor_id) WHERE actor_id IS NOT NULL`.execute(
      db,
    )
    await sql`CREATE INDEX accounts_session_parent_id ON accounts_session (parent_id) WHERE parent_id IS NOT NULL`.execute(
      db,
    )
    await sql`CREATE INDEX accounts_session_expires_at ON accounts_session (expires_at)`.execute(db)
    await sql`
      ALTER TABLE accounts_key
        ADD COLUMN session_id text REFERENCES accounts_session (id) ON DELETE CASCADE`.execute(db)
    await sql`CREATE INDEX accounts_key_session_id ON accounts_key (session_id) WHERE session_id IS NOT NULL`.execute(
      db,
    )
  },
}

export const migrations: Migrations = {
  "001-account-and-key": accountAndKeyMigration,
  "002-sessions": sessionMigration,
  "003-audit": auditMigration,
  "004-keys": keyMigration,
  "005-admin": adminMigration,
  "006-key-expiry": keyExpiryMigration,
  "007-body-limit": bodyLimitMigration,
  "008-own-account": ownAccountMigration,
  "009-key-models": keyModelsMigration,
  "010-payments-and-two-factor": paymentsMigration,
  "011-session-list": sessionListMigration,
}
