import { Effect, Schema, Stream } from "effect"
import { type RawBuilder, sql } from "kysely"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import type { JobHandler } from "../../core/index.ts"
import { type FakeClock, fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { queueCheck } from "./check.ts"
import { migrations } from "./migrations.ts"
import { makeQueue } from "./queue.ts"

const run = Effect.runPromise
const hourMs = 3_600_000
let test: TestDatabase
let clock: FakeClock
beforeAll(async () => {
  test = await openTestDatabase()
  await run(test.database.migrate("queue-postgres", migrations))
})
afterAll(() => test?.close())
const query = async <R>(text: RawBuilder<R>) => (await text.execute(test.database.queries())).rows
beforeEach(async () => {
  clock = fakeClock()
  await query(sql`TRUNCATE queue_payload, queue_dead_letter RESTART IDENTITY`)
})

const handler: JobHandler<string> = {
  name: "job",
  codec: Schema.String,
  concurrency: 1,
  leaseMs: 30_000,
  attempts: 1,
  run: () => Effect.void,
}
const opened = () =>
  makeQueue({
    database: test.database,
    clock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    random: () => 0,
    wake: () => {},
  })
const check = (handlers: readonly string[] = ["job"]) =>
  queueCheck({ database: test.database, clock, handlers: () => handlers })
const findings = (handlers?: readonly string[]) =>
  run(Stream.runCollect(check(handlers).findings(() => {})))
const lines = async (handlers?: readonly string[]) =>
  (await findings(handlers)).map(
    ({ subject, problem, remedy = "-" }) => `${subject}: ${problem} (${remedy})`,
  )
const repairAll = async () => {
  for (const { repair } of await findings())
    for (let time = 0; repair && time < 2; time++) await run(repair)
}

it("finds nothing in a queue that is worked on, and says how much is in it", async () => {
  const { queue, rows } = opened()
  for (const text of ["waits", "runs", "later"])
    await run(queue.send(handler, text, { delayMs: text === "later" ? hourMs : 0 }))
  await run(rows.claim(handler, 1))
  clock.advance(hourMs - 1)
  let looked = 0
  expect(
    await run(
      Stream.runCollect(
        check().findings((things) => {
          looked += things
        }),
      ),
    ),
  ).toEqual([])
  expect(looked).toBe(3)
})

it("runs dead letters again", async () => {
  const { queue, rows } = opened()
  await run(queue.send(handler, "a", { key: "k", priority: 5 }))
  const [claimed] = await run(rows.claim(handler, 1))
  await run(rows.bury(claimed!, "PortError: the disk is full\n  at somewhere"))
  expect(await lines()).toEqual([
    "payload 1 of job, key k: it failed 1 times and lies among the dead: PortError: the disk is full (it is run again)",
  ])
  expect(await lines(["another"])).toEqual([
    "payload 1 of job, key k: it failed 1 times and lies among the dead: PortError: the disk is full (-)",
  ])
  await repairAll()
  expect(await findings()).toEqual([])
  expect(await query(sql`SELECT payload, key, attempts FROM queue_payload`)).toEqual([
    { payload: '"a"', key: "k", attempts: 0 },
  ])
})

it("forgets a dead letter whose key waits again", async () => {
  const { queue, rows } = opened()
  await run(queue.send(handler, "old", { key: "k" }))
  const [claimed] = await run(rows.claim(handler, 1))
  await run(rows.bury(claimed!, "no"))
  await run(queue.send(handler, "new", { key: "k" }))
  await repairAll()
  expect([await findings(), await query(sql`SELECT payload FROM queue_payload`)]).toEqual([
    [],
    [{ payload: '"new"' }],
  ])
})

it("lets what lost its worker long ago wait again, and takes nothing from a worker that came back", async () => {
  const { queue, rows } = opened()
  await run(queue.send(handler, "a"))
  await run(rows.claim(handler, 1))
  clock.advance(hourMs + 30_000)
  const [finding] = await findings()
  expect(await lines()).toEqual([
    "payload 1 of job: its lease ended long ago, and nobody took it over (it waits again)",
  ])
  await query(sql`UPDATE queue_payload SET due_at = ${new Date(clock.nowMs() + 30_000)}`)
  await run(finding!.repair!)
  expect(await query(sql`SELECT lease IS NULL AS free FROM queue_payload`)).toEqual([
    { free: false },
  ])
  await query(sql`UPDATE queue_payload SET due_at = ${new Date(clock.nowMs() - 2 * hourMs)}`)
  await repairAll()
  expect([
    await findings(),
    await query(sql`SELECT lease IS NULL AS free FROM queue_payload`),
  ]).toEqual([[], [{ free: true }]])
})

it("names work that nobody here does, once it has waited for an hour", async () => {
  await run(opened().queue.send({ ...handler, name: "gone" }, "a"))
  clock.advance(hourMs - 1)
  expect(await findings()).toEqual([])
  clock.advance(1)
  expect(await lines()).toEqual([
    "payload 1 of gone: it has waited for more than an hour, and no plugin of this deployment does such work (-)",
  ])
})
