import { Effect } from "effect"
import { sql } from "kysely"
import { PortError } from "../../core/errors.ts"
import type { Plugin } from "../../core/plugin.ts"
import type { Database } from "../../core/ports/database.ts"
import type { Report } from "./blobs.ts"
import { readLines } from "./lines-file.ts"
import type { BackedUpTable, Manifest } from "./manifest.ts"
import { type AnyTables, exactText, type FoundTable, tablesIn } from "./snapshot.ts"

type BackedUpDatabase = NonNullable<Manifest["database"]>
type Migrating = Pick<Plugin, "name" | "migrations">

const refused = (message: string) => new PortError({ port: "backup", message })

/** Why this deployment can't take the backup's tables; undefined: it can. */
export const whyNotThese = (
  { migrations }: BackedUpDatabase,
  plugins: readonly Migrating[],
): string | undefined => {
  for (const [name, ran] of Object.entries(migrations)) {
    const plugin = plugins.find((one) => one.name === name)
    if (!plugin)
      return `The backup has tables of the plugin ${name}, which the config file does not name. Fix: name it under plugins.`
    const unknown = ran.find((migration) => !(migration in (plugin.migrations ?? {})))
    if (unknown !== undefined)
      return `The backup was written by a newer rakit: the migration ${unknown} of ${name} is not known here. Fix: restore with that version.`
  }
  return undefined
}

/** The first rows that the database holds, or the name of a table. An empty one has neither. */
export const firstTable = (database: Database): Effect.Effect<string | undefined, PortError> =>
  Effect.map(
    database.run(() => tablesIn(database.queries())),
    ([table]) => table?.name,
  )

/** Brings the tables to where they were when the backup was taken, so that the rows fit. */
const migrateAsThen = (database: Database, plugins: readonly Migrating[], then: BackedUpDatabase) =>
  Effect.forEach(
    plugins,
    ({ name, migrations = {} }) => {
      const ran = new Set(then.migrations[name])
      return database.migrate(
        name,
        Object.fromEntries(Object.entries(migrations).filter(([id]) => ran.has(id))),
      )
    },
    { discard: true },
  )

/** Tables with the tables that they reference first; those of a cycle at the end. */
const inOrder = async (db: AnyTables, tables: readonly BackedUpTable[]) => {
  const { rows } = await sql<{ from: string; to: string }>`
    SELECT f.relname AS "from", t.relname AS "to" FROM pg_constraint c
    JOIN pg_class f ON f.oid = c.conrelid JOIN pg_class t ON t.oid = c.confrelid
    WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace`.execute(db)
  const ordered: BackedUpTable[] = []
  let rest = [...tables]
  for (;;) {
    const open = new Set(rest.map(({ name }) => name))
    const next = rest.find(
      ({ name }) => !rows.some(({ from, to }) => from === name && to !== name && open.has(to)),
    )
    if (!next) return [...ordered, ...rest]
    ordered.push(next)
    rest = rest.filter((table) => table !== next)
  }
}

const fieldOf = (column: string): string => column.slice(0, column.indexOf(" "))
const typeOf = (column: string): string => column.slice(column.indexOf(" ") + 1)

const rowsPerPage = 100

const insertPage = async (db: AnyTables, table: BackedUpTable, page: readonly unknown[]) => {
  const fields = table.columns.map((column) => sql.id(fieldOf(column)))
  const values = table.columns.map(
    (column, at) => sql`(value->>${sql.lit(at)})::${sql.raw(typeOf(column))}`,
  )
  await sql`
    INSERT INTO ${sql.id(table.name)} (${sql.join(fields)}) OVERRIDING SYSTEM VALUE
    SELECT ${sql.join(values)} FROM unnest(${page.map((row) => JSON.stringify(row))}::json[]) AS value`.execute(
    db,
  )
}

/** Removes what migrations wrote. Tables that only grow refuse a DELETE even of nothing. */
const empty = async (db: AnyTables, name: string): Promise<void> => {
  const { rows } = await sql`SELECT 1 FROM ${sql.id(name)} LIMIT 1`.execute(db)
  if (rows.length > 0) await sql`DELETE FROM ${sql.id(name)}`.execute(db)
}

/** Makes a table of no migration, and first the sequences that its defaults name (`bigserial`). */
const make = async (db: AnyTables, { definition }: BackedUpTable): Promise<void> => {
  for (const statement of definition) {
    for (const [, name] of statement.matchAll(/nextval\('((?:[^']|'')+)'::regclass\)/g))
      await sql.raw(`CREATE SEQUENCE IF NOT EXISTS ${name!.replaceAll("''", "'")}`).execute(db)
    await sql.raw(statement).execute(db)
  }
}

const loadTable = async (
  db: AnyTables,
  folder: string,
  table: BackedUpTable,
  found: FoundTable | undefined,
  report: Report,
): Promise<void> => {
  if (!found) await make(db, table)
  else if (found.columns.join() !== table.columns.join())
    throw refused(`The columns of ${table.name} are not those of the backup.`)
  else await empty(db, table.name)
  let rows = 0
  let page: unknown[] = []
  const flush = async () => {
    if (page.length > 0) await insertPage(db, table, page)
    rows += page.length
    page = []
    report(table.name, rows, table.rows)
  }
  for await (const row of readLines(folder, table))
    if (page.push(row) === rowsPerPage) await flush()
  await flush()
  if (rows !== table.rows) throw refused(`${table.name} has ${rows} rows, not ${table.rows}.`)
}

/** Makes the tables as they were, loads all rows in one transaction, then runs what is newer. */
export const loadDatabase = (
  database: Database,
  plugins: readonly Migrating[],
  backup: BackedUpDatabase,
  folder: string,
  report: Report,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    yield* migrateAsThen(database, plugins, backup)
    yield* database.transaction((tx) => {
      const db = database.queries<Record<string, Record<string, unknown>>>(tx)
      return database.run(async () => {
        await exactText.execute(db)
        for (const name of backup.extensions)
          await sql`CREATE EXTENSION IF NOT EXISTS ${sql.id(name)}`.execute(db)
        const found = new Map((await tablesIn(db)).map((table) => [table.name, table]))
        for (const table of await inOrder(db, backup.tables))
          await loadTable(db, folder, table, found.get(table.name), report)
        for (const { name, value, isCalled } of backup.sequences)
          await sql`SELECT setval(to_regclass(quote_ident(${name})), ${value}::bigint, ${isCalled})`.execute(
            db,
          )
      })
    })
    yield* Effect.forEach(
      plugins,
      ({ name, migrations = {} }) => database.migrate(name, migrations),
      { discard: true },
    )
  })
