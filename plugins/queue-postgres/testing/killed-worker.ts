// Run by killed-worker.slow.test.ts: prints that it is ready; from a line on its input on it works
// through the numbers in the database of argv until it is killed, and prints each one that is done.
import { once } from "node:events"
import { Effect, Queue, Schema } from "effect"
import { Kysely, PostgresDialect, sql } from "kysely"
import pg from "pg"
import { type Database, PortError, systemClock } from "../../../core/index.ts"
import { fakeLog, fakeMetrics } from "../../../testing/fakes.ts"
import { drive } from "../driver.ts"
import { makeQueue } from "../queue.ts"

const kysely = new Kysely<never>({
  dialect: new PostgresDialect({
    pool: new pg.Pool({ connectionString: process.argv[2], max: 4 }),
  }),
})
const failed = (cause: unknown) =>
  new PortError({ port: "database", message: String(cause), cause })
const database: Database = {
  queries: <Tables>() => kysely as unknown as Kysely<Tables>,
  run: (query) => Effect.uninterruptible(Effect.tryPromise({ try: query, catch: failed })),
  transaction: () => Effect.fail(failed("not here")),
  migrate: () => Effect.fail(failed("not here")),
  session: () => Effect.fail(failed("not here")),
}
const run = (n: number) =>
  Effect.sleep(10).pipe(
    Effect.andThen(database.run(() => sql`INSERT INTO done (n) VALUES (${n})`.execute(kysely))),
    Effect.andThen(Effect.sync(() => console.log(n))),
  )

console.log("ready")
await once(process.stdin, "data")
await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const woken = yield* Queue.sliding<true>(1)
      const wake = () => void Queue.offerUnsafe(woken, true)
      const { queue, worker } = makeQueue({
        database,
        clock: systemClock,
        log: fakeLog(),
        metrics: fakeMetrics(),
        random: Math.random,
        wake,
      })
      yield* drive(worker, woken, { clock: systemClock, log: fakeLog(), pollMs: 100 })
      yield* queue.consume({
        name: "numbers",
        codec: Schema.Int,
        concurrency: 8,
        leaseMs: 3_000,
        attempts: 100,
        run,
      })
      yield* Effect.never
    }),
  ),
)
