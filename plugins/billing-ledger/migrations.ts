import { sql } from "kysely"
import type { Migrations } from "../../core/index.ts"
import { admitFunctions } from "./admit-sql.ts"
import { settleFunctions } from "./settle-sql.ts"
import { tables } from "./tables-sql.ts"

export const migrations: Migrations = {
  "001-ledger": {
    up: async (db) => {
      for (const statement of [...tables, ...admitFunctions, ...settleFunctions])
        await statement.execute(db)
    },
  },
  // of lines of batches only, so other calls don't pay for it
  "002-children": {
    up: async (db) =>
      void (await sql`CREATE INDEX ledger_call_children ON ledger_call (parent_id) WHERE parent_id IS NOT NULL`.execute(
        db,
      )),
  },
}
