import { Effect, Schedule } from "effect"
import { sql } from "kysely"
import { expect } from "vitest"
import type { Database } from "../../../core/ports/database.ts"
import type { Transaction } from "../../../core/ports/transaction.ts"
import type { DatabaseCases } from "../database.ts"
import { portErrorOf } from "./errors.ts"
import { idsIn, makeTable, type Tables } from "./table.ts"

const ping = (database: Database) => database.run(() => sql`select 1`.execute(database.queries()))

/** Terminates all other connections, as a restart of the server does. */
const cutOthers = (database: Database) =>
  database.run(() =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.execute(
      database.queries(),
    ),
  )

/** Pings until one succeeds: an adapter may say for a moment that the server is away. */
const pingUntilWell = (database: Database) =>
  ping(database).pipe(Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 500 }))

export const recoveryCases: DatabaseCases = {
  "an error keeps its SQLSTATE and its words": ({ database }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const insert = database.run(() =>
        database.queries<Tables>().insertInto(table).values({ id: "a", amount: 1n }).execute(),
      )
      yield* insert
      const error = portErrorOf(yield* Effect.exit(insert))
      expect(error?.message).toMatch(/duplicate key.*23505/)
      expect(error?.why, "it says nothing about the database").toBeUndefined()
      expect(error?.cause).toMatchObject({ code: "23505" })
    }),

  "lost idle connections are replaced": ({ database, second }) =>
    Effect.gen(function* () {
      yield* Effect.forEach([1, 2, 3, 4, 5], () => ping(database), { concurrency: "unbounded" })
      yield* cutOthers(second)
      yield* pingUntilWell(database)
    }),

  "a statement whose connection is ended says that the database is unavailable": ({
    database,
    second,
  }) =>
    Effect.gen(function* () {
      const sleeping = database.run(() =>
        sql`select pg_sleep(60) as outage`.execute(database.queries()),
      )
      const sleeper = sql`select pid from pg_stat_activity where datname = current_database() and query like '%as outage' and pid <> pg_backend_pid()`
      const cut = second.run(() =>
        sql`select pg_terminate_backend(pid) from (${sleeper}) s`.execute(second.queries()),
      )
      const cutOne = Effect.filterOrFail(cut, ({ rows }) => rows.length > 0)
      const [exit] = yield* Effect.all(
        [Effect.exit(sleeping), Effect.retry(cutOne, { times: 1_000 })],
        {
          concurrency: 2,
        },
      )
      expect(portErrorOf(exit)).toMatchObject({ why: "unavailable" })
    }),

  "a transaction whose connection is lost fails with PortError and gives it back": ({
    database,
    second,
  }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const lost = (tx: Transaction) =>
        database
          .run(() =>
            database
              .queries<Tables>(tx)
              .insertInto(table)
              .values({ id: "a", amount: 1n })
              .execute(),
          )
          .pipe(Effect.andThen(cutOthers(second)), Effect.asVoid)
      // more often than there are connections: a leaked connection would exhaust the pool
      for (let i = 0; i < 25; i += 1) {
        yield* pingUntilWell(database)
        expect(portErrorOf(yield* Effect.exit(database.transaction(lost)))).toMatchObject({
          why: "unavailable",
        })
      }
      yield* pingUntilWell(database)
      expect(yield* idsIn(database, table)).toEqual([])
    }),
}
