import { Effect } from "effect"
import { sql } from "kysely"
import { expect } from "vitest"
import type { Database, Migrations } from "../../../core/ports/database.ts"
import type { DatabaseCases } from "../database.ts"
import { portErrorOf } from "./errors.ts"
import { idsIn, makeTable, type Tables } from "./table.ts"

/** Each migration inserts its name into `table`: running one twice violates the primary key. */
const writing = (table: string, ...names: readonly string[]): Migrations =>
  Object.fromEntries(
    names.map((id) => [
      id,
      {
        up: async (db) => {
          await db.insertInto(table).values({ id, amount: 0n }).execute()
          await sql`select pg_sleep(0.02)`.execute(db)
        },
      },
    ]),
  )

const failing: Migrations = {
  "0002_breaks": {
    up: async (db) => {
      await sql`create table half_done (id int)`.execute(db)
      await sql`select 1 / 0`.execute(db)
    },
  },
}

const tablesOf = (database: Database) =>
  database
    .run(() =>
      sql<{
        name: string
      }>`select table_name as name from information_schema.tables where table_schema = current_schema()`.execute(
        database.queries(),
      ),
    )
    .pipe(Effect.map(({ rows }) => rows.map((row) => row.name)))

export const migrationCases: DatabaseCases = {
  "run once, in the order of their names, and only what is new": ({ database }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const first = writing(table, "0002_b", "0001_a")
      expect(yield* database.migrate("once-only", first)).toEqual(["0001_a", "0002_b"])
      expect(yield* database.migrate("once-only", first)).toEqual([])
      expect(
        yield* database.migrate("once-only", { ...first, ...writing(table, "0003_c") }),
      ).toEqual(["0003_c"])
    }),

  "each plugin has a table of its own": ({ database }) =>
    Effect.gen(function* () {
      const [one, two] = [yield* makeTable(database), yield* makeTable(database)]
      expect(yield* database.migrate("plugin-one", writing(one, "0001_a"))).toEqual(["0001_a"])
      expect(yield* database.migrate("plugin-two", writing(two, "0001_a"))).toEqual(["0001_a"])
      expect(yield* tablesOf(database)).toEqual(
        expect.arrayContaining(["plugin_one_migration", "plugin_two_migration"]),
      )
    }),

  "a plugin without migrations leaves no trace": ({ database }) =>
    Effect.gen(function* () {
      expect(yield* database.migrate("nothing-to-do", {})).toEqual([])
      expect(yield* tablesOf(database)).not.toContain("nothing_to_do_migration")
    }),

  "a failing one is named, and takes back all of this run": ({ database }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const error = portErrorOf(
        yield* Effect.exit(database.migrate("breaks", { ...writing(table, "0001_a"), ...failing })),
      )
      expect(error?.message).toMatch(/0002_breaks of breaks failed.*division by zero/)
      expect(yield* idsIn(database, table)).toEqual([])
      expect(yield* tablesOf(database)).not.toContain("half_done")
      expect(yield* database.migrate("breaks", writing(table, "0001_a"))).toEqual(["0001_a"])
    }),

  "several processes at once run each of them once": ({ database, second }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const names = ["0001_a", "0002_b", "0003_c"]
      const each = (one: Database) => one.migrate("together", writing(table, ...names))
      const ran = yield* Effect.forEach([database, second, database, second, second], each, {
        concurrency: "unbounded",
      })
      expect(ran.flat().sort()).toEqual(names)
      expect(yield* idsIn(database, table)).toEqual(names)
    }),

  "several plugins at once don't disturb each other": ({ database, second }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const each = (plugin: string, i: number) =>
        (i % 2 ? database : second).migrate(plugin, writing(table, `0001_${plugin}`))
      yield* Effect.forEach(["a", "b", "c", "d"], each, { concurrency: "unbounded" })
      const rows = yield* database.run(() =>
        database.queries<Tables>().selectFrom(table).selectAll().execute(),
      )
      expect(rows).toHaveLength(4)
    }),
}
