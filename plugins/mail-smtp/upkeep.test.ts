import { Deferred, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import { PortError } from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { makeAttempt, waitAfterMs } from "./attempt.ts"
import { makeDispatcher } from "./dispatcher.ts"
import { migrations } from "./migrations.ts"
import { keepMs, leaseMs, makeOutboxRows } from "./outbox-rows.ts"
import { sweepHourly } from "./sweeper.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("mail-smtp", migrations))
})
afterAll(() => test?.close())

const run = Effect.runPromise
const ids = ["a", "b", "c"].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
]
const open = (secret = "s") => {
  const clock = fakeClock()
  return { clock, rows: makeOutboxRows(test.database, clock, () => makeSecrets(secret).keyId) }
}
const left = async () =>
  (
    await sql<{ id: string; state: string }>`SELECT id, state FROM mail_outbox ORDER BY id`.execute(
      test.database.queries(),
    )
  ).rows

it("waits longer after each attempt, six of them in about an hour", () => {
  expect([1, 2, 3, 4, 5].map((attempts) => waitAfterMs(attempts, () => 0) / 1000)).toEqual([
    15, 60, 240, 960, 2_400,
  ])
  expect(waitAfterMs(2, () => 0.5)).toBe(66_000)
})

it("who lost the lease changes nothing any more", async () => {
  const { clock, rows } = open()
  await run(rows.insert(ids[0], "encrypted"))
  const first = await run(rows.claim)
  expect(await run(rows.claim)).toBeUndefined()
  clock.advance(leaseMs)
  const second = await run(rows.claim)
  expect(second).toMatchObject({ id: ids[0], attempts: 2 })
  for (const late of [rows.remove(first!), rows.retry(first!, 0), rows.giveUp(first!)])
    await run(late)
  expect(await left()).toEqual([{ id: ids[0], state: "waiting" }])
  expect(await run(rows.claim)).toBeUndefined()
  await run(rows.remove(second!))
  expect(await left()).toEqual([])
})

it("sweeps after seven days what was given up, and what nobody could open", async () => {
  const [{ clock, rows }, stranger] = [open(), open("another")]
  await run(rows.insert(ids[0], "encrypted"))
  await run(rows.giveUp((await run(rows.claim))!))
  await run(stranger.rows.insert(ids[1], "encrypted"))
  clock.advance(1)
  await run(rows.insert(ids[2], "encrypted"))
  clock.advance(keepMs - 2)
  expect(await run(rows.sweep)).toBe(0)
  expect(await left()).toHaveLength(3)
  clock.advance(1)
  expect(await run(rows.sweep)).toBe(1)
  expect(await left()).toEqual([{ id: ids[2], state: "waiting" }])
  clock.advance(keepMs)
  expect(await run(rows.sweep)).toBe(1)
})

it("gives up what can't be opened, and what killed the process that had it", async () => {
  const { clock, rows } = open()
  const log = fakeLog()
  const secrets = makeSecrets("s")
  let tries = 0
  const attempt = makeAttempt({
    rows,
    secrets,
    delivery: { deliver: () => Effect.sync(() => (tries++ < 0 ? "dropped" : "delivered")) },
    log,
    metrics: fakeMetrics(),
    random: () => 0,
  })
  await run(rows.insert(ids[0], "nonsense"))
  await run(attempt((await run(rows.claim))!))
  await run(rows.insert(ids[1], secrets.encrypt("{}")))
  for (let n = 0; n < 6; n++) {
    await run(rows.claim)
    clock.advance(leaseMs)
  }
  await run(attempt((await run(rows.claim))!))
  expect(log.lines.map((line) => line.fields.reason)).toEqual([
    "its content can't be opened",
    "no attempt came to an end",
  ])
  expect(tries).toBe(0)
  expect((await left()).map((row) => row.state)).toEqual(["given_up", "given_up"])
})

const testTime = async () => {
  const services = await run(Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())))
  return { run: Effect.runPromiseWith(services), fork: Effect.runForkWith(services) }
}

it("sweeps every hour, also after an hour that failed", async () => {
  const time = await testTime()
  const log = fakeLog()
  let sweeps = 0
  const sweep = Effect.suspend(() =>
    ++sweeps === 2
      ? Effect.fail(new PortError({ port: "database", message: "down" }))
      : Effect.succeed(sweeps === 3 ? 5 : 0),
  )
  const fiber = time.fork(Effect.scoped(Effect.andThen(sweepHourly({ sweep }, log), Effect.never)))
  for (let hour = 0; hour < 3; hour++) await time.run(TestClock.adjust("1 hour"))
  await time.run(Fiber.interrupt(fiber))
  expect(sweeps).toBe(4)
  expect(log.lines.map((line) => line.fields)).toEqual([
    { cause: expect.stringContaining("down") },
    { mails: 5 },
  ])
})

it("looks again sooner after a wake, seldom when nothing comes, and also after a failure", async () => {
  const time = await testTime()
  const log = fakeLog()
  let looks = 0
  const claim = Effect.suspend(() =>
    ++looks === 35
      ? Effect.fail(new PortError({ port: "database", message: "down" }))
      : Effect.succeed(undefined),
  )
  const dispatcher = makeDispatcher(
    Effect.runSync(Queue.sliding<true>(1)),
    { claim },
    () => Effect.void,
    log,
  )
  const scope = Scope.makeUnsafe()
  await time.run(dispatcher.run.pipe(Scope.provide(scope)))
  await time.run(TestClock.adjust("1 second"))
  expect(looks).toBeLessThan(10)
  await time.run(TestClock.adjust("1 minute"))
  const idle = looks
  expect(idle).toBeGreaterThan(20)
  expect(idle).toBeLessThan(32)
  dispatcher.wake()
  await time.run(TestClock.adjust("100 millis"))
  expect(looks).toBeGreaterThan(idle + 2)
  await time.run(TestClock.adjust("10 seconds"))
  expect(log.lines).toHaveLength(1)
  const after = looks
  await time.run(TestClock.adjust("10 seconds"))
  expect(looks).toBeGreaterThan(after)
  await time.run(Scope.close(scope, Exit.void))
})

it("cuts what is still on its way a while after the stop, and starts nothing new", async () => {
  const time = await testTime()
  const cut = Deferred.makeUnsafe<void>()
  let claims = 0
  const claim = Effect.sync(() => ({ id: ids[0], content: "", attempts: ++claims, createdMs: 0 }))
  const dispatcher = makeDispatcher(
    Effect.runSync(Queue.sliding<true>(1)),
    { claim },
    () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(cut, undefined)),
    fakeLog(),
  )
  const scope = Scope.makeUnsafe()
  await time.run(dispatcher.run.pipe(Scope.provide(scope)))
  await expect.poll(() => claims).toBe(4)
  const stopping = time.run(Scope.close(scope, Exit.void))
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  expect(Deferred.isDoneUnsafe(cut)).toBe(false)
  await time.run(TestClock.adjust("5 seconds"))
  await stopping
  expect(Deferred.isDoneUnsafe(cut)).toBe(true)
  expect(claims).toBe(4)
})
