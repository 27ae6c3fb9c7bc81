import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { sql } from "kysely"
import { afterEach, expect, it } from "vitest"
import type { Migrations } from "../../core/ports/database.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { firstTable, loadDatabase, whyNotThese } from "./load-database.ts"
import { type AnyTables, beginSnapshot, copyDatabase } from "./snapshot.ts"

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-backup-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const silent = () => {}
const first: Migrations = {
  "001": {
    up: async (db) => {
      await sql`CREATE TABLE t_parent (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)`.execute(
        db,
      )
      await sql`CREATE TABLE t_child (parent bigint REFERENCES t_parent, at timestamptz, bytes bytea, list bigint[], note jsonb, half real, long text, twice int GENERATED ALWAYS AS (length(long) * 2) STORED)`.execute(
        db,
      )
      await sql`INSERT INTO t_parent (name) VALUES ('by the migration')`.execute(db)
    },
  },
}
const then: Migrations = {
  ...first,
  "002": {
    up: async (db) =>
      void (await sql`ALTER TABLE t_parent ADD COLUMN more int DEFAULT 7`.execute(db)),
  },
}

it("rows of every type come back exactly, in a newer version too; a table of no migration comes along", async () => {
  const folder = newFolder()
  const [from, to] = [await openTestDatabase(), await openTestDatabase()]
  closers.push(from.close, to.close)
  const run = async <A>(query: Effect.Effect<A, unknown>) => Effect.runPromise(query)
  await run(from.database.migrate("the-plugin", first))
  const db = from.database.queries() as AnyTables
  await sql`INSERT INTO t_parent (name) VALUES (E'a\\n"b\\\\'), (NULL)`.execute(db)
  await sql`INSERT INTO t_child SELECT id, '2026-01-01 00:00:00.123456+07', '\\x00ff', '{1,NULL,9007199254740993}', '{"a": "\\u2028"}', 0.1, 'long' FROM t_parent`.execute(
    db,
  )
  await sql`CREATE TABLE loose (id int PRIMARY KEY, "Seq" bigserial, name text NOT NULL DEFAULT 'x')`.execute(
    db,
  )
  await sql`CREATE INDEX loose_name ON loose (name)`.execute(db)
  await sql`INSERT INTO loose SELECT n FROM generate_series(1, 250) n`.execute(db)
  const written = await run(
    from.database.transaction((tx) =>
      Effect.gen(function* () {
        yield* beginSnapshot(from.database, tx)
        // a later row is not of this moment
        yield* Effect.promise(() => sql`INSERT INTO t_parent (name) VALUES ('late')`.execute(db))
        return yield* copyDatabase(from.database, tx, ["the-plugin"], folder, silent)
      }),
    ),
  )
  expect(written.migrations).toEqual({ "the-plugin": ["001"] })
  expect(written.tables.map(({ name, rows }) => [name, rows])).toEqual([
    ["loose", 250],
    ["t_child", 3],
    ["t_parent", 3],
  ])
  expect(await run(firstTable(to.database))).toBeUndefined()
  const plugin = { name: "the-plugin", migrations: then }
  expect(whyNotThese(written, [plugin])).toBeUndefined()
  await run(loadDatabase(to.database, [plugin], written, folder, silent))
  const rows = async ({ database }: typeof from, query: string) =>
    (await sql.raw<object>(query).execute(database.queries())).rows
  for (const query of [
    "SELECT t_child::text FROM t_child ORDER BY parent",
    "SELECT * FROM loose ORDER BY id",
    "SELECT indexdef FROM pg_indexes WHERE tablename = 'loose' ORDER BY 1",
    "SELECT id, name FROM t_parent WHERE name IS DISTINCT FROM 'late' ORDER BY id",
  ])
    expect(await rows(to, query)).toEqual(await rows(from, query))
  expect(await rows(to, "INSERT INTO t_parent (name) VALUES ('new') RETURNING id, more")).toEqual([
    { id: 5n, more: 7 },
  ])
  const more = `INSERT INTO loose (id) VALUES (251) RETURNING "Seq"::int AS seq`
  expect(await rows(to, more)).toEqual([{ seq: 251 }])
  expect(await run(firstTable(to.database))).toBe("loose")
}, 120_000)
