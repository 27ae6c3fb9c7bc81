import { type Migration, sql } from "kysely"

/** `seq` orders what came in one millisecond. JSON as text: `jsonb` refuses \u0000 and single surrogates, which people do put into names. */
export const auditMigration: Migration = {
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
