import { existsSync } from "node:fs"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Cause, Effect, Exit, Fiber, Option, Scope } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { PortError } from "../../core/errors.ts"
import type { Workers } from "../../core/services/workers.ts"
import { makeWorkers, type WorkersOptions } from "./workers.ts"

const source = `import { threadId } from "node:worker_threads"
interface Input { readonly n: number; readonly waitMs?: number; readonly fail?: true; readonly spin?: true }
let calls = 0
export default async (input: Input): Promise<{ square: number; calls: number; threadId: number }> => {
  if (input.fail) throw new RangeError("not a number of mine")
  while (input.spin) {}
  if (input.waitMs) await new Promise((resolve) => setTimeout(resolve, input.waitMs))
  return { square: input.n ** 2, calls: ++calls, threadId }
}
`
interface Output {
  readonly square: number
  readonly calls: number
  readonly threadId: number
}

let module: URL
const scope = Scope.makeUnsafe()
const open = (options: WorkersOptions) =>
  Effect.runPromise(makeWorkers(options).pipe(Scope.provide(scope)))
const run = (workers: Workers, input: object) => workers.run<object, Output>(module, input)

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "rakit-workers-"))
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  const file = join(folder, "square.ts")
  await writeFile(file, source)
  module = pathToFileURL(file)
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

test("runs a TypeScript module in another thread, which is kept warm", async () => {
  const workers = await open({ threads: 1 })
  const first = await Effect.runPromise(run(workers, { n: 3 }))
  const second = await Effect.runPromise(run(workers, { n: 4 }))
  expect(first).toMatchObject({ square: 9, calls: 1 })
  expect(second).toEqual({ square: 16, calls: 2, threadId: first.threadId })
  expect(first.threadId).toBeGreaterThan(0)
})

const compiled = new URL("../../dist/runtime/services/workers.js", import.meta.url)
test.skipIf(!existsSync(compiled))(
  "the compiled server runs a plugin's TypeScript module, too",
  async () => {
    const { makeWorkers } = (await import(
      /* @vite-ignore */ compiled.href
    )) as typeof import("./workers.ts")
    const workers = await Effect.runPromise(makeWorkers({ threads: 1 }).pipe(Scope.provide(scope)))
    expect(await Effect.runPromise(run(workers, { n: 3 }))).toMatchObject({ square: 9, calls: 1 })
    expect(await Effect.runPromise(run(workers, { n: 4 }))).toMatchObject({ square: 16, calls: 2 })
  },
)

test("a throwing task and a missing module are PortErrors; the pool goes on", async () => {
  const workers = await open({ threads: 1 })
  const failed = await Effect.runPromise(Effect.flip(run(workers, { n: 1, fail: true })))
  expect(failed).toMatchObject({
    _tag: "PortError",
    port: "workers",
    message: "not a number of mine",
  })
  const missing = await Effect.runPromise(
    Effect.flip(workers.run(new URL("./no-such.ts", module), {})),
  )
  expect(missing._tag).toBe("PortError")
  expect((await Effect.runPromise(run(workers, { n: 2 }))).square).toBe(4)
})

test("the queue has a maximum", async () => {
  const workers = await open({ threads: 1, maxQueue: 2 })
  const exits = await Effect.runPromise(
    Effect.forEach([1, 2, 3, 4, 5], (n) => Effect.exit(run(workers, { n, waitMs: 50 })), {
      concurrency: "unbounded",
    }),
  )
  const errors = exits.flatMap((exit) =>
    Exit.isFailure(exit) ? [Option.getOrThrow(Cause.findErrorOption(exit.cause)) as PortError] : [],
  )
  expect(errors).toMatchObject(
    [1, 2].map(() => ({ _tag: "PortError", message: "2 tasks are waiting already", why: "busy" })),
  )
})

test("who leaves while waiting is never run; who leaves while running frees the caller at once and keeps the thread", async () => {
  const workers = await open({ threads: 1 })
  const warm = await Effect.runPromise(run(workers, { n: 1 }))
  const running = Effect.runFork(run(workers, { n: 1, waitMs: 100 }))
  const waiting = Effect.runFork(run(workers, { n: 1 }))
  await Effect.runPromise(Fiber.interrupt(waiting))
  await Effect.runPromise(Fiber.interrupt(running))
  const next = await Effect.runPromise(run(workers, { n: 5 }))
  // the first, the abandoned and this one; not the one that left while it waited
  expect(next).toEqual({ square: 25, calls: 3, threadId: warm.threadId })
})

test("an abandoned task that never ends loses its thread, and the next task gets a new one", async () => {
  const workers = await open({ threads: 1, abandonedMs: 20 })
  const warm = await Effect.runPromise(run(workers, { n: 1 }))
  const stuck = Effect.runFork(run(workers, { n: 1, spin: true }))
  await Effect.runPromise(Fiber.interrupt(stuck))
  const next = await Effect.runPromise(run(workers, { n: 6 }))
  expect(next.square).toBe(36)
  expect(next.threadId).not.toBe(warm.threadId)
})

test("a task over its limit is slow, and one that only waits for its thread is not", async () => {
  const workers = await open({ threads: 1, abandonedMs: 20 })
  await Effect.runPromise(run(workers, { n: 1 }))
  const limited = (input: object, limitMs = 150) =>
    workers.run<object, Output>(module, input, limitMs)
  const first = Effect.runFork(limited({ n: 1, waitMs: 300 }, 10_000))
  expect((await Effect.runPromise(limited({ n: 2 }))).square).toBe(4)
  await Effect.runPromise(Fiber.join(first))
  expect(await Effect.runPromise(Effect.flip(limited({ n: 3, spin: true })))).toMatchObject({
    why: "slow",
  })
  expect((await Effect.runPromise(run(workers, { n: 4 }))).square).toBe(16)
})

test("a task without a limit does not wait for one that may take long", async () => {
  const workers = await open({ threads: 1 })
  const spinning = Effect.runFork(workers.run(module, { n: 1, spin: true }, 60_000))
  expect((await Effect.runPromise(run(workers, { n: 3 }))).square).toBe(9)
  expect(spinning.pollUnsafe()).toBe(undefined)
  await Effect.runPromise(Fiber.interrupt(spinning))
})
