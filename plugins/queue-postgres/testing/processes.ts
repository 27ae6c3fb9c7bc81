import { Effect, Schedule } from "effect"
import { sql } from "kysely"
import { type Database, PortError } from "../../../core/index.ts"
import type { OpenedQueue } from "../../../testing/contracts/queue.ts"
import { type FakeClock, fakeClock, fakeLog, fakeMetrics } from "../../../testing/index.ts"
import { makeQueue } from "../queue.ts"

/** A database that can be cut off, as if the network were gone. */
const breakable = (database: Database) => {
  const state = { isCut: false }
  const run: Database["run"] = (query) =>
    Effect.suspend(() =>
      state.isCut
        ? Effect.fail(new PortError({ port: "database", message: "cut off" }))
        : database.run(query),
    )
  return { state, database: { ...database, run } }
}

const makeProcess = (given: Database, clock: FakeClock) => {
  const { state, database } = breakable(given)
  const log = fakeLog()
  const made = makeQueue({
    database,
    clock,
    log,
    metrics: fakeMetrics(),
    random: () => 0.5,
    wake: () => {},
    reporting: Schedule.recurs(0),
  })
  let runs = 0
  let shortestLeaseMs = Number.POSITIVE_INFINITY
  const { worker, queue } = made
  /** One round of the driver's loops, by hand. */
  const poll = worker.renew.pipe(
    Effect.ignore,
    Effect.andThen(worker.dropLost),
    Effect.andThen(Effect.ignore(worker.fill)),
  )
  return {
    queue: {
      ...queue,
      consume: (handler) =>
        queue.consume({
          ...handler,
          run: (job) =>
            Effect.suspend(() => {
              runs++
              shortestLeaseMs = Math.min(shortestLeaseMs, handler.leaseMs)
              return Effect.ensuring(
                handler.run(job),
                Effect.sync(() => runs--),
              )
            }),
        }),
    } as typeof queue,
    log,
    poll,
    rows: made.rows,
    state,
    /** Leases would end while time jumps: a live process is given the time to renew them. */
    stepMs: () => (runs > 0 && !state.isCut ? shortestLeaseMs / 3 : Number.POSITIVE_INFINITY),
  }
}

/** A turn of the event loop, so that ready runs go on. */
const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))

/** Two processes on one empty table, on a clock that moves by hand. */
export const openProcesses = (database: Database, otherDatabase: Database) =>
  Effect.gen(function* () {
    for (const table of ["queue_payload", "queue_dead_letter"])
      yield* database.run(() => sql`DELETE FROM ${sql.table(table)}`.execute(database.queries()))
    const clock = fakeClock()
    const first = makeProcess(database, clock)
    // all transactions begin on the first process's connections
    const second = makeProcess(
      { ...otherDatabase, queries: (tx) => (tx ? database.queries(tx) : otherDatabase.queries()) },
      clock,
    )
    const poll = Effect.andThen(Effect.andThen(first.poll, second.poll), turn)
    const advance = (ms: number): Effect.Effect<void> =>
      Effect.gen(function* () {
        for (let leftMs = ms; leftMs > 0; ) {
          yield* poll
          const stepMs = Math.min(leftMs, first.stepMs(), second.stepMs())
          clock.advance(stepMs)
          leftMs -= stepMs
        }
        yield* poll
        yield* poll
      })
    const letters = () =>
      sql<{ payload: string }>`SELECT payload FROM queue_dead_letter ORDER BY died_at, id`.execute(
        database.queries(),
      )
    const opened: OpenedQueue = {
      queue: first.queue,
      other: second.queue,
      cutOff: Effect.sync(() => {
        first.state.isCut = true
      }),
      advance,
      deadLetters: Effect.map(database.run(letters), ({ rows }) =>
        rows.map(({ payload }) => JSON.parse(payload) as unknown),
      ),
      transaction: database.transaction,
    }
    return { ...opened, clock, first, second }
  })
