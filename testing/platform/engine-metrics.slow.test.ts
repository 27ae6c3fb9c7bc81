import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Worker } from "node:worker_threads"
import { Effect, Exit, Scope } from "effect"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { stringify } from "yaml"
import { writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { assemble } from "../../runtime/boot/assemble.ts"
import { serveDeployment } from "../../runtime/boot/serve-deployment.ts"
import { loadConfig } from "../../runtime/config/load.ts"
import { fakeLog } from "../fakes/log.ts"
import { openOtlpCollector } from "../otlp-collector.ts"
import { seriesOf } from "../prometheus-text.ts"

/** The metrics of a real engine, behind a server in this process, so that its thread can be ended. */
const folder = mkdtempSync(join(tmpdir(), "rakit-engine-metrics-"))
const scope = Scope.makeUnsafe()
const key = "svc_test_engine_metrics_0123456789"
let engineThread: Worker | undefined
const onWorker = (worker: Worker) => {
  engineThread = worker
}
let collector: Awaited<ReturnType<typeof openOtlpCollector>>
let url: string
let client: OpenAI

const writeConfig = (): string => {
  const content = tinyLlama(8)
  const gguf = join(folder, "tiny.gguf")
  writeFileSync(
    gguf,
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 2048 } }),
  )
  const file = join(folder, "rakit.yaml")
  const hash = `sha256:${createHash("sha256").update(key).digest("hex")}`
  writeFileSync(
    file,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      otel: { endpoint: collector.url },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: [{ name: "app", hash }] },
        "backend-onnx": { threads: 1, slots: 2 },
        "endpoint-chat": {},
      },
      models: [
        {
          id: "tiny",
          task: "chat",
          limits: { contextTokens: 2_000, maxOutputTokens: 1_500 },
          backend: "onnx",
          sources: [{ url: `file:${gguf}` }],
          options: { queueWaitMs: 60_000 },
        },
      ],
    }),
  )
  return file
}

beforeAll(async () => {
  process.on("worker", onWorker)
  collector = await openOtlpCollector()
  let isOpen = false
  const started = Effect.flatMap(
    assemble(loadConfig(writeConfig(), {}), "all", fakeLog()),
    (deployment) =>
      serveDeployment(deployment, {
        version: "0.0.0",
        onListening: () => {},
        onStarted: () => {},
        pulls: { report: () => {}, done: () => {} },
        onModels: (failed) => {
          isOpen = failed.length === 0
        },
      }),
  )
  url = (await Effect.runPromise(started.pipe(Scope.provide(scope)))).url
  await vi.waitUntil(() => isOpen, { timeout: 60_000 })
  // the threads of the pool start with its first task
  process.off("worker", onWorker)
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })
}, 120_000)
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  process.off("worker", onWorker)
  collector.close()
  rmSync(folder, { recursive: true, force: true })
})

const logit_bias = { "1": -100, "2": -100 }
const ask = (content: string, max_tokens: number) => ({
  model: "tiny",
  messages: [{ role: "user" as const, content }],
  temperature: 0,
  max_tokens,
  logit_bias,
})
const read = async (name: string, more = ""): Promise<number | undefined> => {
  const series = seriesOf(await (await fetch(`${url}/metrics`)).text())
  return series.get(`${name}{model_name="tiny"${more}}`)
}
const patient = { timeout: 15_000, interval: 20 }
const realtime = ',priority="realtime"'
const letters = "abcdefghi".repeat(20)

it("a prompt that was read before is found in the prefix cache, all but its last token", async () => {
  const { usage } = await client.chat.completions.create(ask(letters, 4))
  const input = usage!.prompt_tokens
  expect(await read("rakit_prefix_cache_queries_total")).toBe(input)
  expect(await read("rakit_prefix_cache_hits_total")).toBe(0)
  await client.chat.completions.create(ask(letters, 4))
  expect(await read("rakit_prefix_cache_queries_total")).toBe(2 * input)
  expect(await read("rakit_prefix_cache_hits_total")).toBe(input - 1)
  expect(await read("rakit_prefix_cache_usage_perc")).toBeGreaterThan(0)
  expect(await read("rakit_prompt_tokens_total", realtime)).toBe(2 * input)
  expect(await read("rakit_generation_tokens_total", realtime)).toBe(8)
  for (const name of ["queue_time", "prefill_time", "decode_time"])
    expect(await read(`rakit_request_${name}_seconds_count`, realtime)).toBe(2)
})

it("more requests than slots: some run, the others wait, and memory is held", async () => {
  const running = [1, 2, 3, 4].map((n) =>
    client.chat.completions.create(ask(`${n}`, 700)).then(({ usage }) => usage!.completion_tokens),
  )
  await vi.waitFor(async () => {
    expect(await read("rakit_num_requests_running", realtime)).toBe(2)
    expect(await read("rakit_num_requests_waiting", realtime)).toBe(2)
  }, patient)
  expect(await read("rakit_kv_cache_usage_perc")).toBeGreaterThan(0)
  expect(await Promise.all(running)).toEqual([700, 700, 700, 700])
  expect(await read("rakit_num_requests_running", realtime)).toBe(0)
  expect(await read("rakit_kv_cache_usage_perc")).toBe(0)
  const whole = seriesOf(await (await fetch(`${url}/metrics`)).text())
  expect(
    whole.get(
      'rakit_request_success_total{finished_reason="length",model_name="tiny",priority="realtime"}',
    ),
  ).toBe(6)
}, 60_000)

it("a trace has the stages of the engine, one after the other", async () => {
  const stages = () => {
    const request = collector.spans.find(({ kind }) => kind === 2)
    return collector.spans.filter(({ kind, traceId }) => kind === 1 && traceId === request?.traceId)
  }
  await vi.waitUntil(() => stages().length > 0, { timeout: 10_000 })
  const span = (name: string) => stages().find((one) => one.name === name)!
  expect(span("tokenize").parentSpanId).toBe(span("plan").spanId)
  const engine = ["queue", "prefill", "decode"].map(span)
  for (const [n, { startTimeUnixNano, endTimeUnixNano }] of engine.entries()) {
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano))
    const next = engine[n + 1]
    if (next) expect(BigInt(next.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(endTimeUnixNano))
  }
})

it("an engine whose thread ends is started again: restarts count, totals go on", async () => {
  const queries = await read("rakit_prefix_cache_queries_total")
  expect(await read("rakit_engine_restarts_total")).toBe(0)
  const lost = client.chat.completions.create(ask("lost", 1_400)).catch((error) => error)
  await vi.waitFor(async () => expect(await read("rakit_num_requests_running", realtime)).toBe(1))
  // stands for any crash
  engineThread!.postMessage({ type: "close" })
  expect(await lost).toMatchObject({ status: 500, code: "backend_error" })
  await vi.waitFor(
    async () => {
      expect(await read("rakit_engine_restarts_total")).toBe(1)
      await client.chat.completions.create(ask("again", 2))
    },
    { timeout: 30_000, interval: 200 },
  )
  expect(await read("rakit_prefix_cache_queries_total")).toBeGreaterThan(queries!)
  expect(await read("rakit_kv_cache_usage_perc")).toBe(0)
  const whole = seriesOf(await (await fetch(`${url}/metrics`)).text())
  expect(
    whole.get(
      'rakit_request_failure_total{code="backend_error",endpoint="chat.completions",model_name="tiny"}',
    ),
  ).toBe(1)
}, 60_000)
