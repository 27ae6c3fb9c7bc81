import { Effect, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import { PortError, type Tenant } from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { fakeClock, fakeLog } from "../../testing/index.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import { keepMs, makePostgresIdempotency } from "./postgres-idempotency.ts"
import { sweepExpired, sweepHourly } from "./sweeper.ts"

let test: Awaited<ReturnType<typeof openTestDatabase>>
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("idempotency-postgres", migrations))
})
afterAll(() => test?.close())

it("deletes what has expired, however much it is, and nothing else", async () => {
  const { database } = test
  const clock = fakeClock()
  const store = makePostgresIdempotency(database, clock, makeSecrets("shared"))
  const tenant: Tenant = { account: "acct_1", mode: "live" }
  await sql`
    INSERT INTO idempotency_key (account, mode, key, fingerprint, attempt, state, lease_until, expires_at)
    SELECT 'acct_1', 'live', 'old-' || n, 'body', gen_random_uuid(), 'running', ${new Date(clock.nowMs())}, ${new Date(clock.nowMs() + keepMs)} FROM generate_series(1, 4500) n`.execute(
    database.queries(),
  )
  clock.advance(1)
  await Effect.runPromise(store.begin(tenant, "young", "body"))
  expect(await Effect.runPromise(sweepExpired(database, clock))).toBe(0)
  clock.advance(keepMs - 1)
  expect(await Effect.runPromise(sweepExpired(database, clock))).toBe(4500)
  clock.advance(1)
  expect(await Effect.runPromise(sweepExpired(database, clock))).toBe(1)
})

it("sweeps every hour, also after an hour that failed", async () => {
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(services)
  const log = fakeLog()
  let sweeps = 0
  const sweep = Effect.suspend(() => {
    sweeps += 1
    if (sweeps === 2) return Effect.fail(new PortError({ port: "database", message: "down" }))
    if (sweeps === 3) throw new Error("a bug")
    return Effect.succeed(0)
  })
  const fiber = Effect.runForkWith(services)(
    Effect.scoped(Effect.andThen(sweepHourly(sweep, log), Effect.never)),
  )
  for (let hour = 0; hour < 4; hour++) await run(TestClock.adjust("1 hour"))
  await run(Fiber.interrupt(fiber))
  expect(sweeps).toBe(5)
  expect(log.lines.filter((line) => line.level === "warn")).toHaveLength(2)
})
