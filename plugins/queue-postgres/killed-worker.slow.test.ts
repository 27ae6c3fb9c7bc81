import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { type JobHandler, systemClock } from "../../core/index.ts"
import { fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import { makeQueue } from "./queue.ts"

const jobs = 600
const kills = 12

let test: TestDatabase
const children = new Set<ChildProcess>()
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("queue-postgres", migrations))
  await sql`CREATE TABLE done (n int NOT NULL)`.execute(test.database.queries())
})
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL")
  await test?.close()
})

/** Resolves with a worker that has done `runs` jobs. */
const workUntil = (runs: number): Promise<ChildProcess> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        "--import",
        "tsx",
        fileURLToPath(new URL("./testing/killed-worker.ts", import.meta.url)),
        test.url,
      ],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    )
    children.add(child)
    let lines = 0
    child.stdout.on("data", (chunk: Buffer) => {
      lines += chunk.toString().split("\n").length - 1
      if (lines >= runs) resolve(child)
    })
    child.once("exit", () => reject(new Error("the worker ended by itself")))
  })
const kill = async (child: ChildProcess) => {
  children.delete(child)
  child.kill("SIGKILL")
  await once(child, "exit")
}

it("kill -9 of workers, again and again, loses nothing", async () => {
  const { queue } = makeQueue({
    database: test.database,
    clock: systemClock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    random: Math.random,
    wake: () => {},
  })
  const handler: JobHandler<number> = {
    name: "numbers",
    codec: Schema.Int,
    concurrency: 1,
    leaseMs: 3_000,
    attempts: 100,
    run: () => Effect.void,
  }
  const all = Array.from({ length: jobs }, (_, n) => n)
  await Effect.runPromise(
    Effect.forEach(all, (n) => queue.send(handler, n, { key: `${n}`, priority: n % 3 }), {
      concurrency: 8,
      discard: true,
    }),
  )
  // two workers at a time, each killed while it runs jobs
  for (let n = 0; n < kills / 2; n++)
    for (const child of await Promise.all([workUntil(1 + n * 3), workUntil(5)])) await kill(child)
  const survivor = await workUntil(0 + 1)
  const left = async () =>
    (
      await sql<{ n: number }>`SELECT count(*)::int AS n FROM queue_payload`.execute(
        test.database.queries(),
      )
    ).rows[0]?.n
  await vi.waitFor(async () => expect(await left()).toBe(0), { timeout: 60_000, interval: 200 })
  await kill(survivor)
  const { rows } = await sql<{
    n: number
    times: number
  }>`SELECT n, count(*)::int AS times FROM done GROUP BY n ORDER BY n`.execute(
    test.database.queries(),
  )
  expect(rows.map(({ n }) => n)).toEqual(all)
  const again = rows.reduce((sum, { times }) => sum + times - 1, 0)
  console.log(`${jobs} jobs, ${kills} kills: ${again} runs were repeated`)
  expect(again).toBeLessThanOrEqual(kills * 8)
  expect(
    (await sql`SELECT * FROM queue_dead_letter`.execute(test.database.queries())).rows,
  ).toEqual([])
}, 240_000)
