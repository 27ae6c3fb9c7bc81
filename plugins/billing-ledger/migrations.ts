import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { type Kysely, sql } from "kysely"
import type { Migrations } from "../../core/index.ts"

/** The files are beside the sources; the compiler does not copy them to `dist/`. */
const sqlFile = (name: string): URL => {
  const file = `sql/${name}.sql`
  const beside = new URL(file, import.meta.url)
  return existsSync(beside)
    ? beside
    : new URL(`../../../plugins/billing-ledger/${file}`, import.meta.url)
}

const runFiles = async (db: Kysely<unknown>, names: readonly string[]): Promise<void> => {
  for (const name of names) await sql.raw(await readFile(sqlFile(name), "utf8")).execute(db)
}

/** Functions of LANGUAGE sql come before those that call them. */
const functions = [
  "calendar",
  "lock",
  "admit",
  "uncount",
  "close",
  "close-late",
  "settle",
  "adjust",
] as const

export const migrations: Migrations = {
  "001-ledger": { up: (db) => runFiles(db, ["tables", "types"]) },
  // only lines of batches have a parent, so other calls don't pay for this index
  "002-children": {
    up: async (db) => {
      await sql`CREATE INDEX ledger_call_children ON ledger_call (parent_id) WHERE parent_id IS NOT NULL`.execute(
        db,
      )
    },
  },
  // databases of earlier versions got the functions in 001; a changed file needs a migration of its
  // own
  "003-functions": { up: (db) => runFiles(db, functions) },
  "004-refusals": { up: (db) => runFiles(db, ["refusals"]) },
  "005-evidence": {
    up: async (db) => {
      await sql`ALTER TYPE ledger_settlement ADD ATTRIBUTE evidence jsonb`.execute(db)
      await sql`ALTER TABLE ledger_call ADD COLUMN evidence jsonb`.execute(db)
      await runFiles(db, ["close"])
    },
  },
  "006-refused-calls": { up: (db) => runFiles(db, ["refused-calls"]) },
  "007-call-outcomes": { up: (db) => runFiles(db, ["call-outcomes", "close", "close-late"]) },
  // reports over all accounts; of calls only lines of batches that cost something are in it, whose
  // sum then needs no row of theirs
  "008-revenue": {
    up: async (db) => {
      await sql`CREATE INDEX ledger_usage_hour ON ledger_usage (hour)`.execute(db)
      await sql`CREATE INDEX ledger_call_batch_cost ON ledger_call (admitted_at) INCLUDE (cost_micros) WHERE parent_id IS NOT NULL AND cost_micros > 0`.execute(
        db,
      )
    },
  },
  "009-fewer-checks": {
    up: (db) => runFiles(db, ["constraints", "admit", "close", "settle"]),
  },
  "010-spare-calls": {
    up: (db) => runFiles(db, ["spares", "admit", "uncount", "close", "settle"]),
  },
}
