import { Effect, Schema } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { apiError } from "../../../core/errors.ts"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
} from "../testing/fixture.ts"
import { makeTracing, type OtlpSpan, parentOf } from "./trace.ts"

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
const span = "00f067aa0ba902b7"

describe("traceparent", () => {
  it.each<[string, string, boolean | undefined]>([
    ["sampled", `00-${trace}-${span}-01`, true],
    ["not sampled", `00-${trace}-${span}-00`, false],
    ["further flags", `00-${trace}-${span}-03`, true],
    ["a later version with more", `cc-${trace}-${span}-01-what-is-it`, true],
    ["version 00 with more", `00-${trace}-${span}-01-x`, undefined],
    ["version ff", `ff-${trace}-${span}-01`, undefined],
    ["no trace", `00-${"0".repeat(32)}-${span}-01`, undefined],
    ["no span", `00-${trace}-${"0".repeat(16)}-01`, undefined],
    ["capitals", `00-${trace.toUpperCase()}-${span}-01`, undefined],
    ["short", `00-${trace}-${span}`, undefined],
  ])("%s", (_, header, isSampled) => {
    expect(parentOf(header)?.isSampled).toBe(isSampled)
  })
})

let fixture: HttpFixture | undefined
const spans: OtlpSpan[] = []
afterEach(async () => {
  spans.length = 0
  await fixture?.close()
  fixture = undefined
})

const failing = (code: "backend_error" | "backend_busy") =>
  defineEndpoint<{ readonly model: string }>({
    id: code,
    summary: "",
    method: "POST",
    path: `/v1/${code}`,
    access: "key",
    body: Schema.Struct({ model: Schema.String }),
    maxBodyBytes: 1000,
    plan: () => Effect.succeed({ bound: {}, run: Effect.fail(apiError(code)) }),
  })
const open = async (sampleRatio = 1) => {
  fixture = await openHttpFixture({
    endpoints: [echo, failing("backend_error"), failing("backend_busy")],
    trace: makeTracing({
      sampleRatio,
      export: (more) => void spans.push(...more),
      random: () => 0.5,
      nowMs: Date.now,
    }),
  })
}
const ask = async (path: string, headers: Record<string, string> = {}) => {
  const body = '{"model":"m","extra":"a secret prompt"}'
  await (await post(fixture!.url + path, body, { ...authorized, ...headers })).text()
  await vi.waitUntil(() => fixture!.log.lines.some(({ event }) => event === "request.finished"))
}
const attributes = ({ attributes: all }: OtlpSpan) =>
  Object.fromEntries(all.map(({ key, value }) => [key, Object.values(value)[0]]))
const named = (name: string) => spans.find((one) => one.name === name)!

describe("a request that is sampled", () => {
  it("is a span of the client's trace, its stages are spans of it", async () => {
    await open()
    const beforeMs = Date.now()
    await ask("/v1/echo", { traceparent: `00-${trace}-${span}-01` })
    const root = named("POST /v1/echo")
    expect(root).toMatchObject({ traceId: trace, parentSpanId: span, kind: 2, status: { code: 0 } })
    expect(spans.map(({ name }) => name)).toEqual([
      "POST /v1/echo",
      "auth",
      "body",
      "plan",
      "limits",
      "hold",
      "settle",
    ])
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
    const { startTimeUnixNano: from, endTimeUnixNano: to } = root
    expect(Number(BigInt(from) / 1_000_000n)).toBeGreaterThanOrEqual(beforeMs - 5)
    expect(Number(BigInt(to) / 1_000_000n)).toBeLessThanOrEqual(Date.now() + 5)
    for (const stage of spans.slice(1)) {
      expect(stage).toMatchObject({ traceId: trace, parentSpanId: root.spanId, kind: 1 })
      expect(BigInt(stage.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(from) - 1_000_000n)
      expect(BigInt(stage.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(stage.startTimeUnixNano))
      expect(BigInt(stage.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(to) + 1_000_000n)
    }
    const line = fixture!.log.lines.find(({ event }) => event === "request.finished")!
    expect(line.fields.trace_id).toBe(trace)
  })

  it("says what it was in the words of the GenAI conventions, and neither prompt nor key", async () => {
    await open()
    await ask("/v1/echo")
    expect(attributes(named("POST /v1/echo"))).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/echo",
      "http.response.status_code": 200,
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "rakit",
      "gen_ai.request.model": "m",
      "gen_ai.response.model": "m",
      "gen_ai.usage.input_tokens": 0,
      "gen_ai.usage.output_tokens": 1,
      "rakit.account": "acc",
      "rakit.cost_idr": 1,
      "rakit.request_id": expect.any(String),
      "rakit.call_id": expect.any(String),
    })
    expect(named("POST /v1/echo").traceId).toMatch(/^[0-9a-f]{32}$/)
    expect(JSON.stringify(spans)).not.toMatch(new RegExp(`secret prompt|${goodKey}`))
  })

  it("is an error when the server failed; a refusal is none", async () => {
    await open()
    await ask("/v1/backend_error")
    expect(named("POST /v1/backend_error").status).toEqual({ code: 2, message: "backend_error" })
    await ask("/v1/backend_busy")
    await vi.waitUntil(() => named("POST /v1/backend_busy"))
    expect(named("POST /v1/backend_busy").status).toEqual({ code: 0 })
    expect(attributes(named("POST /v1/backend_busy"))).toMatchObject({
      "error.type": "backend_busy",
      "http.response.status_code": 429,
    })
  })
})

it("samples by its ratio, and by the flag of a client that has decided", async () => {
  await open(0.4)
  await ask("/v1/echo")
  expect(spans).toEqual([])
  await ask("/v1/echo", { traceparent: `00-${trace}-${span}-01` })
  await vi.waitUntil(() => spans.length > 0)
  spans.length = 0
  await fixture?.close()
  await open(1)
  await ask("/v1/echo", { traceparent: `00-${trace}-${span}-00` })
  expect(spans).toEqual([])
  await (await fetch(`${fixture!.url}/healthz`)).text()
  await vi.waitUntil(() => fixture!.log.lines.at(-1)?.level === "debug")
  expect(spans).toEqual([])
})
