import "reflect-metadata/lite"
import { Effect, Exit, Schema, Scope } from "effect"
import { sql } from "kysely"
import { container as root } from "tsyringe"
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import {
  type Database,
  type JobHandler,
  PortError,
  provide,
  resolve,
  systemClock,
  Tokens,
} from "../../core/index.ts"
import { makeMetrics } from "../../runtime/services/metrics.ts"
import { fakeLog } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { plugin } from "./plugin.ts"

let test: TestDatabase
let second: Database
const closers: (() => Promise<void>)[] = []
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate(plugin.name, plugin.migrations ?? {}))
  second = await test.openAgain()
})
afterAll(() => test?.close())
beforeEach(() =>
  Effect.runPromise(
    test.database.run(() =>
      sql`TRUNCATE queue_payload, queue_dead_letter`.execute(test.database.queries()),
    ),
  ).then(() => {}),
)

/** The whole plugin in real time, as one process of a deployment. */
const start = async (database = test.database, settings = {}) => {
  const container = root.createChildContainer()
  const log = fakeLog()
  const metrics = makeMetrics()
  provide(container, Tokens.database, database)
  provide(container, Tokens.clock, systemClock)
  provide(container, Tokens.log, log)
  provide(container, Tokens.metrics, metrics)
  provide(container, Tokens.deployment, {
    name: "test",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://localhost",
    mode: "server",
  })
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    (
      plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings)).start?.(container) ??
      Effect.void
    ).pipe(Scope.provide(scope)),
  )
  const queue = resolve(container, Tokens.queue)
  let isOpen = true
  const stop = async () => {
    if (isOpen) await Effect.runPromise(Scope.close(scope, Exit.void))
    isOpen = false
  }
  closers.push(stop)
  return {
    queue,
    log,
    metrics,
    stop,
    consume: (handler: JobHandler<string>) =>
      Effect.runPromise(queue.consume(handler).pipe(Scope.provide(scope))),
  }
}
const handlerOf = (seen: string[], more: Partial<JobHandler<string>> = {}): JobHandler<string> => ({
  ...{ name: "job", codec: Schema.String, concurrency: 4, leaseMs: 30_000, attempts: 3 },
  run: (text) => Effect.sync(() => void seen.push(text)),
  ...more,
})
const stopAll = async () => {
  for (const stop of closers.splice(0)) await stop()
}

describe("a process in real time", () => {
  it("begins at once what it sent itself, although it polls once a minute", async () => {
    const seen: string[] = []
    const { queue, consume } = await start(test.database, { pollMs: 60_000 })
    await consume(handlerOf(seen))
    await Effect.runPromise(queue.send(handlerOf(seen), "plain"))
    await vi.waitFor(() => expect(seen).toEqual(["plain"]), { timeout: 5_000 })
    await Effect.runPromise(
      test.database.transaction((tx) => queue.send(handlerOf(seen), "in a transaction", {}, tx)),
    )
    await vi.waitFor(() => expect(seen).toEqual(["plain", "in a transaction"]), { timeout: 5_000 })
    await Effect.runPromise(queue.send(handlerOf(seen), "delayed", { delayMs: 300 }))
    await vi.waitFor(() => expect(seen).toContain("delayed"), { timeout: 5_000 })
    await stopAll()
  })

  it("finds what others sent, and shares the work with them: each job once", async () => {
    const [here, there] = [[] as string[], [] as string[]]
    const [one, two, sender] = [
      await start(test.database, { pollMs: 50 }),
      await start(second, { pollMs: 50 }),
      await start(),
    ]
    const slowly = (seen: string[]) =>
      handlerOf(seen, {
        concurrency: 2,
        run: (text) =>
          Effect.andThen(
            Effect.sleep(5),
            Effect.sync(() => void seen.push(text)),
          ),
      })
    await one.consume(slowly(here))
    await two.consume(slowly(there))
    const all = Array.from({ length: 100 }, (_, n) => `${n}`)
    await Effect.runPromise(
      Effect.forEach(all, (text) => sender.queue.send(handlerOf([]), text), {
        concurrency: 8,
        discard: true,
      }),
    )
    await vi.waitFor(() => expect(here.length + there.length).toBe(100), { timeout: 15_000 })
    expect([...here, ...there].sort()).toEqual(all.sort())
    expect(Math.min(here.length, there.length)).toBeGreaterThan(0)
    await stopAll()
  })

  it("keeps a dead letter with its last error, tells it in log and metrics, and deletes it when it is old", async () => {
    const broken = handlerOf([], {
      attempts: 1,
      run: () => Effect.fail(new PortError({ port: "test", message: "the disk\0 is full" })),
    })
    const { queue, consume, log, metrics } = await start()
    await consume(broken)
    await Effect.runPromise(queue.send(broken, "a\0b"))
    const letters = () =>
      sql<{
        payload: string
        error: string
        attempts: number
      }>`SELECT payload, error, attempts FROM queue_dead_letter`.execute(test.database.queries())
    await vi.waitFor(
      async () =>
        expect((await letters()).rows).toEqual([
          {
            payload: '"a\\u0000b"',
            error: expect.stringContaining("the disk is full"),
            attempts: 1,
          },
        ]),
      {
        timeout: 5_000,
      },
    )
    await vi.waitFor(
      async () => expect(await metrics.expose()).toMatch(/rakit_queue_dead_total\{job="job"\} 1/),
      { timeout: 5_000 },
    )
    expect(log.lines).toContainEqual(
      expect.objectContaining({
        level: "error",
        fields: expect.objectContaining({ job: "job", attempts: 1 }),
      }),
    )
    await stopAll()
    await sql`UPDATE queue_dead_letter SET died_at = died_at - interval '29 days'`.execute(
      test.database.queries(),
    )
    await start()
    await stopAll()
    expect((await letters()).rows).toHaveLength(1)
    await sql`UPDATE queue_dead_letter SET died_at = died_at - interval '2 days'`.execute(
      test.database.queries(),
    )
    await start()
    await vi.waitFor(async () => expect((await letters()).rows).toEqual([]), { timeout: 5_000 })
    await stopAll()
  })

  it("refuses a job of more than a million characters", async () => {
    const { queue } = await start()
    expect(
      await Effect.runPromise(Effect.flip(queue.send(handlerOf([]), "x".repeat(1_000_000)))),
    ).toMatchObject({ _tag: "PortError", port: "queue" })
    await stopAll()
  })

  it("does not lose its place when the database goes away for a while", async () => {
    const seen: string[] = []
    let isDown = false
    const database: Database = {
      ...test.database,
      run: (query) =>
        Effect.suspend(() =>
          isDown
            ? Effect.fail(new PortError({ port: "database", message: "down" }))
            : test.database.run(query),
        ),
    }
    const { consume, log } = await start(database, { pollMs: 50 })
    isDown = true
    await consume(handlerOf(seen))
    await vi.waitFor(
      () => expect(log.lines).toContainEqual(expect.objectContaining({ level: "warn" })),
      { timeout: 5_000 },
    )
    const sender = await start()
    await Effect.runPromise(sender.queue.send(handlerOf([]), "meanwhile"))
    isDown = false
    await vi.waitFor(() => expect(seen).toEqual(["meanwhile"]), { timeout: 5_000 })
    expect(
      log.lines.filter(({ level, message }) => level === "warn" && message.startsWith("looking")),
    ).toHaveLength(1)
    await stopAll()
  })
})
