import type { Migrations } from "../../core/index.ts"
import { admitFunctions } from "./admit-sql.ts"
import { settleFunctions } from "./settle-sql.ts"
import { tables } from "./tables-sql.ts"

export const migrations: Migrations = {
  "001-ledger": {
    up: async (db) => {
      for (const statement of [...tables, ...admitFunctions, ...settleFunctions]) await statement.execute(db)
    },
  },
}
