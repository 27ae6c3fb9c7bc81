import { Effect, Exit, Scope } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import { PortError } from "../../core/index.ts"
import { makeGate, record } from "../../testing/contracts/queue/recorder.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import { openProcesses } from "./testing/processes.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("queue-postgres", migrations))
})
afterAll(() => test?.close())

const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))
const rows = () =>
  Effect.map(
    test.database.run(() =>
      sql<{
        attempts: number
        leased: boolean
      }>`SELECT attempts, lease IS NOT NULL AS leased FROM queue_payload`.execute(
        test.database.queries(),
      ),
    ),
    (result) => result.rows,
  )

/**
 * A process that was suspended: it is connected, its lease went to another process, and it has not
 * noticed.
 */
it.each(["succeeds", "fails"] as const)(
  "a run that %s after its lease went to another changes nothing",
  (ending) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { queue, other, clock, first, second } = yield* openProcesses(
            test.database,
            test.database,
          )
          const [late, gate] = [makeGate(), makeGate()]
          const broken = Effect.fail(new PortError({ port: "test", message: "late" }))
          const here = record({ leaseMs: 10_000 }, () =>
            Effect.uninterruptible(
              Effect.andThen(late.pass, ending === "fails" ? broken : Effect.void),
            ),
          )
          const there = record({ leaseMs: 10_000 }, () => gate.pass)
          const scope = yield* Scope.make()
          yield* queue.consume(here.handler).pipe(Scope.provide(scope))
          yield* queue.send(here.handler, "slow")
          yield* first.poll
          expect(here.began).toEqual(["slow"])
          yield* other.consume(there.handler)
          clock.advance(10_000)
          yield* second.poll
          expect(there.began).toEqual(["slow"])
          yield* late.open
          // waits until the run has ended and has reported it
          yield* Scope.close(scope, Exit.void)
          expect(yield* rows()).toEqual([{ attempts: 2, leased: true }])
          yield* gate.open
          while ((yield* rows()).length > 0) yield* turn
          expect(there.succeeded).toEqual(["slow"])
        }),
      ),
    ),
)
