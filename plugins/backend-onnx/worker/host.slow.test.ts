import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Worker } from "node:worker_threads"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { afterAll, expect, test, vi } from "vitest"
import { fakeLog } from "../../../testing/index.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "../generation/decoder-jobs.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { failureOf } from "../testing/open-backend.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { type Engine, startEngine } from "./host.ts"
import type { EngineSpec } from "./protocol.ts"
import { startThread } from "./start-thread.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-host-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const path = join(root, "tiny.gguf")
// more memory than any test fills
const content = tinyLlama()
writeFileSync(
  path,
  writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 32_768 } }),
)
const spec: EngineSpec = {
  kind: "decoder",
  path,
  graphs: join(root, "graphs"),
  precision: "fp32",
  threads: 1,
  slots: 2,
  kvBytes: 2 ** 30,
  prefixCacheBytes: 2 ** 26,
  speculation: true,
}

const job = (maxTokens: number): DecoderRequest => ({
  kind: "generate",
  owner: "a",
  cacheBreakpoints: [],
  promptIds: Int32Array.of(5, 6, 7),
  maxTokens,
  seed: 1,
  stop: [],
  sampler: {
    temperature: 0,
    topP: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: [
      [1, -100],
      [2, -100],
    ],
  },
})
const options = {
  account: "a",
  waitMs: 60_000,
  priority: "realtime",
  timeoutMs: () => 60_000,
  translate: (event: { readonly type: string }) => [event.type],
} as const

const until = (holds: () => boolean) => vi.waitUntil(holds, { timeout: 60_000, interval: 20 })

/** Starts a long job and waits for its first event. */
const startLongJob = async (engine: Engine<DecoderRequest, DecoderEvent, DecoderInfo>) => {
  let events = 0
  const run = Stream.tap(engine.run(job(30_000), options), () => Effect.sync(() => events++))
  const running = Effect.runFork(Effect.flip(Stream.runDrain(run)))
  await until(() => events > 0)
  return running
}

const opened = async () => {
  const log = fakeLog()
  const scope = Scope.makeUnsafe()
  const threads: Worker[] = []
  const start = (of: EngineSpec) => {
    threads.push(startThread(of))
    return threads.at(-1)!
  }
  const engine: Engine<DecoderRequest, DecoderEvent, DecoderInfo> = await Effect.runPromise(
    startEngine<DecoderRequest, DecoderEvent, DecoderInfo>({
      spec,
      queue: 4,
      log,
      placement: { start, servedBy: () => "test" },
      progress: () => {},
    }).pipe(Scope.provide(scope)),
  )
  return { engine, log, threads, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

test("a thread that dies fails the requests in it, is started again, and then serves", async () => {
  const { engine, log, threads, close } = await opened()
  const running = await startLongJob(engine)
  // stands for any crash: the thread ends by itself, between two calls of ONNX Runtime
  threads[0]!.postMessage({ type: "close" })
  expect(await Effect.runPromise(Fiber.join(running))).toMatchObject({ code: "backend_error" })
  expect(await failureOf(engine.available)).toMatchObject({ code: "model_loading" })
  await until(
    () =>
      threads.length === 2 &&
      log.lines.some((line) => line.message === "an engine's thread was started again"),
  )
  expect((await Effect.runPromise(Stream.runCollect(engine.run(job(3), options)))).at(-1)).toBe(
    "time",
  )
  expect(log.lines.find((line) => line.level === "error")).toMatchObject({
    message: "an engine's thread ended",
    fields: { requestsLost: 1 },
  })
  expect(engine.stats().restarts).toBe(1)
  await close()
})

test("a job that the engine can't do fails alone", async () => {
  const { engine, close } = await opened()
  const bad: DecoderRequest = {
    ...job(1),
    kind: "generate",
    promptIds: Int32Array.of(2 ** 30),
  } as DecoderRequest
  expect(await failureOf(Stream.runDrain(engine.run(bad, options)))).toMatchObject({
    code: "backend_error",
  })
  expect(await Effect.runPromise(Stream.runCollect(engine.run(job(2), options)))).toContain(
    "finish",
  )
  await close()
})

test("closing fails what still runs and ends the thread", async () => {
  const { engine, threads, close } = await opened()
  const ended = new Promise((resolve) => threads[0]!.once("exit", resolve))
  const running = await startLongJob(engine)
  await close()
  expect(await Effect.runPromise(Fiber.join(running))).toMatchObject({ code: "backend_error" })
  expect(await ended).toBe(0)
  expect(await failureOf(engine.available)).toMatchObject({ code: "backend_error" })
})

test("a grammar that is lost is named as the reason, and the next one is served", async () => {
  const { engine, close } = await opened()
  const asking = (lark: string): DecoderRequest =>
    ({
      ...job(4),
      kind: "generate",
      grammar: { grammar: { kind: "lark", lark }, closeOnLength: false },
    }) as DecoderRequest
  expect(
    await failureOf(Stream.runDrain(engine.run(asking("start: nothing"), options))),
  ).toMatchObject({ code: "schema_not_satisfied", message: expect.stringContaining("grammar") })
  expect(
    await Effect.runPromise(Stream.runCollect(engine.run(asking('start: "a" | "b"'), options))),
  ).toContain("finish")
  await close()
})

test("lines of batches fill a queue of their own: who waits for an answer still gets in", async () => {
  const { engine, close } = await opened()
  const lines = Array.from({ length: 6 }, () =>
    Effect.runFork(
      Effect.exit(Stream.runDrain(engine.run(job(30_000), { ...options, priority: "batch" }))),
    ),
  )
  await until(() => Exit.isFailure(Effect.runSyncExit(engine.available)))
  expect(await failureOf(engine.available)).toMatchObject({ code: "backend_busy" })
  expect(await Effect.runPromise(Stream.runCollect(engine.run(job(3), options)))).toContain(
    "finish",
  )
  await Effect.runPromise(Fiber.interruptAll(lines))
  await Effect.runPromise(engine.available)
  await close()
})
