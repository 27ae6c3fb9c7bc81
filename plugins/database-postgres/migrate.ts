import {
  Kysely,
  type MigrationResultSet,
  Migrator,
  PostgresDialect,
  type PostgresPool,
} from "kysely"
import type { Migrations } from "../../core/ports/database.ts"
import { databaseError } from "./failure.ts"

const longestName = 63 - "_lock".length

const tableOf = (plugin: string): string => {
  const table = `${plugin.replaceAll(/[^A-Za-z0-9_]/g, "_")}_migration`
  if (table.length > longestName)
    throw databaseError(`the name is too long for a table, ${table}`, `migrations of ${plugin}`)
  return table
}

const failure = (plugin: string, { error, results }: MigrationResultSet) => {
  const failed = results?.find((result) => result.status === "Error")
  const which =
    failed === undefined
      ? `migrations of ${plugin}`
      : `migration ${failed.migrationName} of ${plugin}`
  return databaseError(error, `${which} failed, nothing was changed`)
}

/**
 * Runs the migrations that have not run yet, in one transaction. Processes that migrate the same
 * database wait for each other (Kysely takes an advisory lock).
 * Returns their names. Closes `pool`. Rejects with a PortError.
 */
export const migrateTables = async (
  pool: PostgresPool,
  plugin: string,
  migrations: Migrations,
): Promise<readonly string[]> => {
  const table = tableOf(plugin)
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  try {
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => ({ ...migrations }) },
      migrationTableName: table,
      migrationLockTableName: `${table}_lock`,
      // by code unit, whatever the locale of the process
      nameComparator: (a, b) => (a < b ? -1 : a > b ? 1 : 0),
    })
    const outcome = await migrator.migrateToLatest()
    if (outcome.error !== undefined) throw failure(plugin, outcome)
    return (outcome.results ?? []).map((result) => result.migrationName)
  } finally {
    await db.destroy()
  }
}
