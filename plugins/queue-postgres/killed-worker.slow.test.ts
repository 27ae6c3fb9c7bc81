import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { sql } from "kysely"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { type JobHandler, systemClock } from "../../core/index.ts"
import { fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import { makeQueue } from "./queue.ts"

const jobs = 600
const kills = 12

let test: TestDatabase
const children = new Set<ChildProcess>()
beforeEach(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("queue-postgres", migrations))
  await sql`CREATE TABLE done (n int NOT NULL)`.execute(test.database.queries())
})
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL")
  children.clear()
  await test?.close()
})

interface Worker {
  readonly child: ChildProcess
  /** Resolves when so many lines were printed: `ready`, then one for each job. */
  printed(lines: number): Promise<void>
}

const startWorker = async (): Promise<Worker> => {
  const child = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      fileURLToPath(new URL("./testing/killed-worker.ts", import.meta.url)),
      test.url,
    ],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  )
  children.add(child)
  let lines = 0
  child.stdout.on("data", (chunk: Buffer) => {
    lines += chunk.toString().split("\n").length - 1
  })
  const printed = (least: number) =>
    new Promise<void>((resolve, reject) => {
      const look = () => lines >= least && resolve()
      child.stdout.on("data", look)
      child.once("exit", () => reject(new Error("the worker ended by itself")))
      look()
    })
  await printed(1)
  return { child, printed }
}

/**
 * Resolves with workers that have done so many jobs each. They begin together: one that is slow to
 * start would find nothing left to do.
 */
const workUntil = async (...runs: readonly number[]): Promise<readonly ChildProcess[]> => {
  const workers = await Promise.all(runs.map(startWorker))
  for (const { child } of workers) child.stdin!.write("begin\n")
  await Promise.all(workers.map(({ printed }, i) => printed(1 + runs[i]!)))
  return workers.map(({ child }) => child)
}
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
    for (const child of await workUntil(1 + n * 3, 5)) await kill(child)
  const [survivor] = await workUntil(1)
  const left = async () =>
    (
      await sql<{ n: number }>`SELECT count(*)::int AS n FROM queue_payload`.execute(
        test.database.queries(),
      )
    ).rows[0]?.n
  await vi.waitFor(async () => expect(await left()).toBe(0), { timeout: 60_000, interval: 200 })
  await kill(survivor!)
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
