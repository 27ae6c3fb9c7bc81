import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { expect } from "vitest"
import type { Database } from "../../../core/ports/database.ts"
import type { Transaction } from "../../../core/ports/transaction.ts"
import type { DatabaseCases } from "../database.ts"
import { isPortErrorOf } from "./errors.ts"
import { idsIn, makeTable, type Tables } from "./table.ts"

const insert = (database: Database, table: string, id: string, tx?: Transaction, amount = 1n) =>
  database.run(() =>
    database.queries<Tables>(tx).insertInto(table).values({ id, amount }).execute(),
  )

const sleepInServer = (database: Database, tx: Transaction) =>
  database.run(() => sql`select pg_sleep(0.15)`.execute(database.queries(tx)))

type Ending = "success" | "failure" | "defect" | "interruption"

const endingAs = (ending: Ending): Effect.Effect<void, string> =>
  ({
    success: Effect.void,
    failure: Effect.fail("no"),
    defect: Effect.die("bug"),
    interruption: Effect.interrupt,
  })[ending]

const rollsBack = (ending: Ending) => (opened: { readonly database: Database }) =>
  Effect.gen(function* () {
    const { database } = opened
    const table = yield* makeTable(database)
    const exit = yield* Effect.exit(
      database.transaction((tx) =>
        insert(database, table, "a", tx).pipe(Effect.andThen(endingAs(ending))),
      ),
    )
    expect(Exit.isFailure(exit)).toBe(true)
    expect(yield* idsIn(database, table)).toEqual([])
  })

/** The expected rows follow from how each transaction ended. */
const endings = fc.array(fc.constantFrom<Ending>("success", "failure", "defect", "interruption"), {
  minLength: 1,
  maxLength: 40,
})

export const transactionCases: DatabaseCases = {
  "success commits": ({ database, second }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const answer = yield* database.transaction((tx) =>
        insert(database, table, "a", tx).pipe(Effect.as("done")),
      )
      expect(answer).toBe("done")
      expect(yield* idsIn(second, table)).toEqual(["a"])
    }),
  "a failure rolls back": rollsBack("failure"),
  "a defect rolls back": rollsBack("defect"),
  "an interruption rolls back": rollsBack("interruption"),

  "the failure of the body comes out as it is": ({ database }) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        database.transaction(() => Effect.fail({ _tag: "Refused", why: "balance" } as const)),
      )
      expect(Exit.isFailure(exit) && Cause.findErrorOption(exit.cause)).toMatchObject({
        value: { _tag: "Refused", why: "balance" },
      })
    }),

  "an interruption in the middle of a query waits for it and then rolls back": ({ database }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const inserted = yield* Deferred.make<void>()
      const body = (tx: Transaction) =>
        insert(database, table, "a", tx).pipe(
          Effect.andThen(Deferred.succeed(inserted, undefined)),
          Effect.andThen(sleepInServer(database, tx)),
          Effect.andThen(insert(database, table, "b", tx)),
        )
      const fiber = yield* Effect.forkChild(database.transaction(body), { startImmediately: true })
      yield* Deferred.await(inserted)
      yield* Fiber.interrupt(fiber)
      expect(yield* idsIn(database, table)).toEqual([])
    }),

  "others see nothing before the commit": ({ database, second }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      yield* database.transaction((tx) =>
        Effect.gen(function* () {
          yield* insert(database, table, "a", tx)
          expect(yield* idsIn(database, table)).toEqual([])
          expect(yield* idsIn(second, table)).toEqual([])
        }),
      )
      expect(yield* idsIn(second, table)).toEqual(["a"])
    }),

  "a transaction with a failed statement can't commit, also when the failure was caught": ({
    database,
  }) =>
    Effect.gen(function* () {
      const table = yield* makeTable(database)
      const twice = (tx: Transaction) =>
        insert(database, table, "a", tx).pipe(
          Effect.andThen(Effect.ignore(insert(database, table, "a", tx))),
        )
      const exit = yield* Effect.exit(database.transaction(twice))
      expect(isPortErrorOf(exit)).toBe(true)
      expect(yield* idsIn(database, table)).toEqual([])
    }),

  "the handle of a transaction that has ended is refused": ({ database, second }) =>
    Effect.gen(function* () {
      const tx = yield* database.transaction(Effect.succeed)
      expect(() => database.queries(tx)).toThrow(/ended/)
      yield* database.transaction((mine) =>
        Effect.sync(() => expect(() => second.queries(mine)).toThrow(/another database/)),
      )
    }),

  "many at once, however they end, leave what committed and no connection behind": ({ database }) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(endings, async (list) => {
          const table = await Effect.runPromise(makeTable(database))
          const one = (ending: Ending, i: number) =>
            Effect.exit(
              database.transaction((tx) =>
                insert(database, table, `${i + 100}`, tx).pipe(Effect.andThen(endingAs(ending))),
              ),
            )
          await Effect.runPromise(Effect.forEach(list, one, { concurrency: "unbounded" }))
          const committed = list.flatMap((ending, i) =>
            ending === "success" ? [`${i + 100}`] : [],
          )
          expect(await Effect.runPromise(idsIn(database, table))).toEqual(committed)
        }),
        { numRuns: 15 },
      ),
    ),
}
