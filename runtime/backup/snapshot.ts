import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { PortError } from "../../core/errors.ts"
import type { Database } from "../../core/ports/database.ts"
import type { Transaction } from "../../core/ports/transaction.ts"
import type { Report } from "./blobs.ts"
import { writeLines } from "./lines-file.ts"
import type { BackedUpTable, Manifest } from "./manifest.ts"
import { definitionOf } from "./table-definition.ts"

/** Queries on the catalogs, and on tables of which only the names are known. */
export type AnyTables = Kysely<Record<string, Record<string, unknown>>>

/** Rows of one page; a row may have a megabyte. */
const rowsPerPage = 100

export interface FoundTable {
  readonly name: string
  readonly columns: readonly string[]
}

/** Values as text are exact, and mean the same in every server, with these. */
export const exactText = sql`
  SELECT set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true),
    set_config('bytea_output', 'hex', true), set_config('extra_float_digits', '1', true),
    set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`

/** Ordinary tables of the schema and their columns, without generated ones. */
export const tablesIn = async (db: AnyTables): Promise<readonly FoundTable[]> => {
  const { rows } = await sql<FoundTable>`
    SELECT c.relname AS name,
      array_agg(a.attname::text || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attname) AS columns
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
    GROUP BY c.relname ORDER BY c.relname`.execute(db)
  return rows
}

const migrationSuffix = "_migration"

/** The table in which the database notes a plugin's migrations (core/ports/database.ts). */
export const migrationTableOf = (plugin: string): string =>
  `${plugin.replaceAll(/[^A-Za-z0-9_]/g, "_")}${migrationSuffix}`

const migrationsOf = async (db: AnyTables, plugins: readonly string[], tables: Set<string>) => {
  const migrations: Record<string, readonly string[]> = {}
  for (const plugin of plugins) {
    const table = migrationTableOf(plugin)
    if (!tables.has(table)) continue
    const { rows } = await sql<{ name: string }>`
      SELECT name FROM ${sql.id(table)} ORDER BY name`.execute(db)
    migrations[plugin] = rows.map(({ name }) => name)
  }
  return migrations
}

const extensionsIn = async (db: AnyTables) => {
  const { rows } = await sql<{ name: string }>`
    SELECT extname AS name FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY 1`.execute(db)
  return rows.map(({ name }) => name)
}

/** Sequences know no snapshot: read after the rows, they are never behind them. */
const sequencesIn = async (db: AnyTables) => {
  const { rows } = await sql<{ name: string }>`
    SELECT relname AS name FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S' ORDER BY 1`.execute(db)
  const sequences: { name: string; value: string; isCalled: boolean }[] = []
  for (const { name } of rows) {
    const read = await sql<{ value: string; isCalled: boolean }>`
      SELECT last_value::text AS value, is_called AS "isCalled" FROM ${sql.id(name)}`.execute(db)
    sequences.push({ name, ...read.rows[0]! })
  }
  return sequences
}

const fieldsOf = (columns: readonly string[]): readonly string[] =>
  columns.map((column) => column.slice(0, column.indexOf(" ")))

/**
 * Writes the rows of a table, each as the text of a record with its columns by name, as the target
 * may have them in another order.
 */
const copyTable = async (
  db: AnyTables,
  folder: string,
  { name, columns }: FoundTable,
  report: Report,
): Promise<BackedUpTable> => {
  const file = writeLines(folder, `tables/${name}.jsonl.gz`)
  const fields = fieldsOf(columns).map((field) => sql`${sql.id(field)}::text`)
  await sql`DECLARE backup_rows NO SCROLL CURSOR FOR
    SELECT array[${sql.join(fields)}] AS row FROM ${sql.id(name)}`.execute(db)
  let rows = 0
  for (;;) {
    const page = await sql<{ row: unknown }>`
      FETCH ${sql.raw(String(rowsPerPage))} FROM backup_rows`.execute(db)
    if (page.rows.length === 0) break
    rows += page.rows.length
    await file.write(page.rows.map(({ row }) => row))
    report(name, rows)
  }
  await sql`CLOSE backup_rows`.execute(db)
  return { ...(await file.close()), name, columns, rows, definition: await definitionOf(db, name) }
}

/** Begins the snapshot: all that follows in the transaction sees the database of this moment. */
export const beginSnapshot = (
  database: Database,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const db = database.queries<Record<string, Record<string, unknown>>>(tx)
    yield* database.run(() =>
      sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`.execute(db),
    )
    yield* database.run(() => exactText.execute(db))
  })

/** Writes the whole schema of the transaction's snapshot, but the locks of migrations. */
export const copyDatabase = (
  database: Database,
  tx: Transaction,
  plugins: readonly string[],
  folder: string,
  report: Report,
): Effect.Effect<NonNullable<Manifest["database"]>, PortError> => {
  const db = database.queries<Record<string, Record<string, unknown>>>(tx)
  return Effect.gen(function* () {
    const found = yield* database.run(() => tablesIn(db))
    const names = new Set(found.map(({ name }) => name))
    const own = new Set(plugins.map(migrationTableOf).flatMap((name) => [name, `${name}_lock`]))
    const tables: BackedUpTable[] = []
    for (const table of found)
      if (!own.has(table.name))
        tables.push(yield* database.run(() => copyTable(db, folder, table, report)))
    return {
      migrations: yield* database.run(() => migrationsOf(db, plugins, names)),
      extensions: yield* database.run(() => extensionsIn(db)),
      tables,
      sequences: yield* database.run(() => sequencesIn(db)),
    }
  })
}
