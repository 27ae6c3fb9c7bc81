import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeMetrics } from "../../runtime/services/metrics.ts"
import { fakeClock } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { measureJobs } from "./job-counts.ts"
import { migrations } from "./migrations.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("queue-postgres", migrations))
})
afterAll(() => test?.close())

it("counts the jobs of this deployment's handlers by their state, at most 10,000 of each", async () => {
  const clock = fakeClock()
  const metrics = makeMetrics()
  const at = (plusMs: number) => new Date(clock.nowMs() + plusMs)
  const add = (job: string, n: number, dueMs: number, isLeased = false) =>
    sql`INSERT INTO queue_payload (job, payload, priority, due_at, lease, created_at)
      SELECT ${job}, '1', 0, ${at(dueMs)}, CASE WHEN ${isLeased} THEN gen_random_uuid() END, ${at(0)} FROM generate_series(1, ${n}::int)`.execute(
      test.database.queries(),
    )
  await add("mail", 10_001, -1)
  await add("mail", 2, 1_000)
  await add("mail", 3, 1_000, true)
  await add("of-another-deployment", 1, -1)
  await sql`INSERT INTO queue_dead_letter (id, job, payload, attempts, error, created_at, died_at) VALUES (1000000, 'mail', '1', 3, 'no', ${at(0)}, ${at(0)})`.execute(
    test.database.queries(),
  )
  const { database } = test
  const handlers = () => ["mail", "webhook"]
  const counted = async () => {
    await Effect.runPromise(measureJobs({ database, clock, metrics, handlers }))
    const series = (await metrics.read(["rakit_queue_jobs", "rakit_none"])).get("rakit_queue_jobs")
    return Object.fromEntries(
      series?.map(({ labels: { job, state }, value }) => [`${job} ${state}`, value]) ?? [],
    )
  }
  const none = {
    "webhook waiting": 0,
    "webhook delayed": 0,
    "webhook running": 0,
    "webhook dead": 0,
  }
  expect(await counted()).toEqual({
    ...{ "mail waiting": 10_000, "mail delayed": 2, "mail running": 3, "mail dead": 1 },
    ...none,
  })
  await sql`DELETE FROM queue_payload WHERE lease IS NULL AND due_at <= ${at(0)}`.execute(
    database.queries(),
  )
  clock.advance(1_001)
  expect(await counted()).toMatchObject({ "mail waiting": 2, "mail delayed": 0 })
})
