import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import { parsePrice } from "../../core/pricing.ts"
import { makeCatalogue } from "../../core/services/catalogue.ts"
import { makeStarted } from "../../core/started.ts"
import { callPathFixture, fakeChatModel, fakeEntry } from "../../testing/index.ts"
import type { Readiness } from "../http/system/health.ts"
import { makeMetrics } from "../services/metrics.ts"
import { makeModelMetrics } from "../services/model-metrics.ts"
import { pricesEndpoint } from "./prices-endpoint.ts"
import { serverEndpoint } from "./server-endpoint.ts"

const fixture = callPathFixture()
const { clock } = fixture
const ask = (endpoint: Endpoint, role: "admin" | "user" = "admin") =>
  fixture.ask(endpoint, undefined, { caller: { ...fixture.caller, role } })
const deployment = {
  name: "test",
  dataDir: "/nonexistent",
  modelsDir: "/nonexistent",
  baseUrl: "",
  mode: "server",
  role: "api",
} as const

it("the server's state: checks with reasons, each model's state, queue and engine", async () => {
  const chat = fakeChatModel({
    entry: { id: "ready", options: { precision: "int8", apiKey: "a-secret" } },
  })
  const states = ["pulling", "loading", "failed", "waiting"].map((id) => fakeEntry("chat", { id }))
  const catalogue = makeCatalogue([chat.entry, ...states])
  const metrics = makeMetrics()
  const stats = { prefixCacheQueries: 8, prefixCacheHits: 2, kvCacheUsage: 0.5, restarts: 1 }
  const { watch } = makeModelMetrics(metrics, catalogue, clock)
  const loaded = watch(chat.entry, { ...chat.loaded, stats: () => stats })
  catalogue.set("ready", { state: "ready", loaded })
  catalogue.set("pulling", { state: "pulling", doneBytes: 5, totalBytes: undefined })
  catalogue.set("loading", { state: "loading", detail: "reading weights" })
  catalogue.set("failed", { state: "failed", reason: "the file is torn" })
  const of = { model_name: "ready" }
  metrics.gauge("rakit_num_requests_running", "", []).add(3, { ...of, priority: "realtime" })
  metrics.gauge("rakit_num_requests_waiting", "", []).add(4, { ...of, priority: "batch" })
  metrics.gauge("rakit_batches", "Batches.", ["status"]).set(2, { status: "in_progress" })
  const started = makeStarted<Effect.Effect<Readiness>>()
  const parts = { catalogue, metrics, clock, deployment, version: "1.2.3" }
  const endpoint = serverEndpoint({ ...parts, readiness: started.get })
  expect(await ask(endpoint)).toMatchObject({ status: 503, json: { code: "server_starting" } })
  const checks = [{ name: "database", ok: false, reason: "connection refused" }]
  started.set(Effect.succeed({ status: "failing", starting: [], models: [], checks }))
  expect(await ask(endpoint, "user")).toMatchObject({ status: 403 })
  const { json } = await ask(endpoint)
  expect(json).toMatchObject({
    ...{ object: "server", name: "test", version: "1.2.3", role: "api", status: "failing", checks },
    process: { disk: null },
    models: [
      {
        ...{ id: "ready", state: "ready", precision: "int8", task: "chat", backend: "fake" },
        ...{ running: 3, waiting: 0, batch_running: 0, batch_waiting: 4 },
        engine: { kv_cache_usage: 0.5, prefix_cache_hits: 0.25, adapter_bytes: null, restarts: 1 },
      },
      { id: "pulling", state: "pulling", done_bytes: 5, total_bytes: null, engine: null },
      { id: "loading", state: "loading", reason: "reading weights", precision: null },
      { id: "failed", state: "failed", reason: "the file is torn" },
      { id: "waiting", state: "waiting" },
    ],
    metrics: [{ name: "rakit_batches", labels: { status: "in_progress" }, value: 2 }],
  })
  expect(JSON.stringify(json)).not.toContain("a-secret")
})

it("prices: of the config and in force, exact, with those of batches and their origin", async () => {
  const chat = fakeChatModel({
    entry: {
      id: "chat",
      price: parsePrice({ input: 1_234.567891, output: 0.000001, image: 7 }),
      adapters: [{ id: "legal", sources: [] }],
    },
  })
  const closed = fakeEntry("image", { id: "closed", price: parsePrice({ image: 750 }) })
  const free = fakeEntry("embed", { id: "free", price: parsePrice({}) })
  const catalogue = makeCatalogue([chat.entry, closed, free], 0.333)
  catalogue.set("chat", { state: "ready", loaded: chat.loaded })
  const originOf = (name: string) => (name === "chat:legal" ? "lora-plugin" : "config")
  const endpoint = pricesEndpoint({ catalogue, clock, originOf })
  expect(await ask(endpoint, "user")).toMatchObject({ status: 403 })
  const { json } = await ask(endpoint)
  const per = "1000000 tokens"
  expect(json).toMatchObject({
    ...{ object: "prices", batch_price_factor: 0.333 },
    models: [
      {
        ...{
          id: "chat",
          origin: "config",
          adapters: [{ id: "chat:legal", origin: "lora-plugin" }],
        },
        prices: expect.arrayContaining([
          {
            ...{ kind: "input", per, configured_idr: "1234.567891", idr: "1234.567891" },
            batch_idr: "411.111107703",
          },
          {
            ...{ kind: "output", per, configured_idr: "0.000001", idr: "0.000001" },
            batch_idr: "0.000000333",
          },
          // the model takes no images, so nobody is charged for one
          { kind: "image", per: "image", configured_idr: "7", idr: "0", batch_idr: "0" },
        ]),
      },
      { id: "closed", prices: [{ kind: "image", configured_idr: "750" }] },
      { id: "free", prices: [] },
    ],
  })
})
