import { Effect } from "effect"
import { afterEach, expect, test } from "vitest"
import { freePrice } from "../../../core/pricing.ts"
import type { ModelEntry } from "../../../core/services/model-entry.ts"
import {
  authorized,
  echo,
  type FixtureOptions,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  thing,
} from "../testing/fixture.ts"

let fixture: HttpFixture
const open = async (options: FixtureOptions) => {
  fixture = await openHttpFixture({ endpoints: [echo, thing], ...options })
}
afterEach(() => fixture.close())

const get = async (path: string) => {
  const res = await fetch(fixture.url + path)
  return {
    status: res.status,
    headers: res.headers,
    json: (await res.json()) as { status?: string; error?: { code: string } },
  }
}
const model = (id: string): ModelEntry => ({
  id,
  task: "chat",
  tier: "",
  ownedBy: "",
  description: "",
  contextTokens: 1,
  maxOutputTokens: 1,
  defaultMaxTokens: 1,
  modalities: [],
  capabilities: [],
  price: freePrice,
  backend: "b",
  sources: [],
  adapters: [],
  options: {},
})

test("listening: alive, not ready, and an unknown path is not called missing", async () => {
  await open({ until: "listening" })
  expect(await get("/healthz")).toMatchObject({ status: 200, json: { status: "ok" } })
  expect(await get("/readyz")).toMatchObject({
    status: 503,
    json: {
      status: "starting",
      starting: ["database-postgres"],
      models: [{ id: "m" }],
      checks: [],
    },
  })
  expect(await get("/v1/things/1")).toMatchObject({
    status: 503,
    json: { error: { code: "server_starting" } },
  })
})

test("published: public GETs are served, keyed endpoints answer 503 with Retry-After, before the key is looked at", async () => {
  await open({ until: "published" })
  expect(await get("/v1/things/1")).toMatchObject({ status: 200, json: { id: "1" } })
  expect(await get("/nowhere")).toMatchObject({ status: 404 })
  for (const headers of [authorized, { "content-type": "application/json" }]) {
    const res = await post(`${fixture.url}/v1/echo`, '{"model":"m"}', headers)
    expect([res.status, res.headers.get("retry-after"), res.headers.get("retry-after-ms")]).toEqual(
      [503, "2", "2000"],
    )
    expect(await res.json()).toMatchObject({ error: { code: "server_starting" } })
  }
  fixture.server.ready()
  expect((await post(`${fixture.url}/v1/echo`, '{"model":"m"}')).status).toBe(200)
})

test("models on their way are shown with their progress; a failed one with its reason; all ready is 200", async () => {
  await open({ models: [model("a"), model("b"), model("c")] })
  fixture.catalogue.set("a", { state: "pulling", doneBytes: 5, totalBytes: undefined })
  fixture.catalogue.set("b", { state: "loading", detail: "reading weights" })
  expect(await get("/readyz")).toMatchObject({
    status: 503,
    json: {
      status: "loading",
      models: [
        { id: "a", state: "pulling", done_bytes: 5, total_bytes: null },
        { id: "b", state: "loading", detail: "reading weights" },
        { id: "c", state: "waiting" },
      ],
    },
  })
  const ready = {
    state: "ready" as const,
    loaded: {
      task: undefined as never,
      contextTokens: 1,
      modalities: [],
      capabilities: [],
      adapters: [],
      servedBy: "onnx cpu",
    },
  }
  for (const [id, reproducible] of [
    ["a", 0],
    ["b", 1],
  ] as const)
    fixture.catalogue.set(id, {
      ...ready,
      loaded: { ...ready.loaded, stats: () => ({ reproducible }) },
    })
  fixture.catalogue.set("c", { state: "failed", reason: "no source could be used" })
  expect(await get("/readyz")).toMatchObject({
    status: 503,
    json: {
      status: "failing",
      models: [
        { reproducible: false },
        { served_by: "onnx cpu", reproducible: true },
        { id: "c", state: "failed", reason: "no source could be used" },
      ],
    },
  })
  fixture.catalogue.set("c", ready)
  expect(await get("/readyz")).toMatchObject({ status: 200, json: { status: "ready" } })
})

test("checks: what fails, throws or hangs is named, and many askers cost one question", async () => {
  let asked = 0
  const ask = Effect.sync(() => void asked++)
  await open({
    timings: { checkTimeoutMs: 30 },
    checkList: [
      { name: "fine", check: ask },
      { name: "down", check: Effect.fail("connection refused") },
      { name: "broken", check: Effect.die(new Error("oops")) },
      { name: "hung", check: Effect.never },
    ],
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => get("/readyz")))
  expect(answers[0]).toMatchObject({
    status: 503,
    json: {
      status: "failing",
      checks: [
        { name: "fine", ok: true },
        { name: "down", ok: false, reason: "connection refused" },
        { name: "broken", ok: false, reason: "Error: oops" },
        { name: "hung", ok: false, reason: "no answer within 30 ms" },
      ],
    },
  })
  expect(asked).toBe(1)
})

test("metrics count by endpoint and status, never by path", async () => {
  await open({})
  await post(`${fixture.url}/v1/echo`, '{"model":"m"}')
  await post(`${fixture.url}/v1/echo`, "{")
  await fetch(`${fixture.url}/secret-path-${goodKey}`)
  await fetch(`${fixture.url}/v1/things/1`)
  const res = await fetch(`${fixture.url}/metrics`)
  const text = await res.text()
  expect(res.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/)
  for (const line of [
    'rakit_http_requests_total{endpoint="echo",method="POST",status="200"} 1',
    'rakit_http_requests_total{endpoint="echo",method="POST",status="400"} 1',
    'rakit_http_requests_total{endpoint="(none)",method="GET",status="404"} 1',
    'rakit_http_request_duration_seconds_count{endpoint="things.get"} 1',
    "rakit_http_streams_open 0",
  ])
    expect(text).toContain(line)
  expect(text).not.toContain("secret-path")
})

test("the root says where to look", async () => {
  await open({})
  expect(await get("/")).toMatchObject({
    status: 200,
    json: { name: "rakit", version: "0.0.0", openapi: "/openapi.json" },
  })
})

test("a port in use is a ListenError that says what to do", async () => {
  await open({})
  await expect(openHttpFixture({ port: fixture.port, timings: { portWaitMs: 0 } })).rejects.toThrow(
    `Port ${fixture.port} is in use`,
  )
})
