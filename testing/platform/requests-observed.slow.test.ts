import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import {
  clientSpan,
  clientTrace,
  collectorKey,
  type ObservedServer,
  openObservedServer,
  scrapeToken,
} from "./observed-server.ts"

/** One line of the log and one trace for each request of real clients. */
let server: ObservedServer
beforeAll(async () => {
  server = await openObservedServer()
}, 120_000)
afterAll(() => server?.close())

it("each request is one line of the log, with all that it was", () => {
  const chats = server.finished().filter(({ route }) => route === "/v1/chat/completions")
  expect(chats).toHaveLength(6)
  const [first] = chats
  expect(first).toMatchObject({
    level: "info",
    status: 200,
    model: "svc-lyt",
    input_tokens: 4,
    output_tokens: 3,
    cost_idr: 0.024,
    account: expect.any(String),
    key: expect.any(String),
    trace_id: clientTrace,
  })
  for (const stage of ["auth", "body", "plan", "limits", "hold", "settle"])
    expect(first!.stages_ms).toHaveProperty(stage)
  expect(chats.filter(({ code }) => code === "invalid_request_error")).toMatchObject([
    { status: 400, model: "svc-lyt", cost_idr: 0 },
  ])
  const cut = chats.find((line) => line.cut === true)
  expect(cut).toMatchObject({ model: "svc-omni", status: 200 })
  expect(cut!.output_tokens).toBeGreaterThan(0)
  expect(server.platform.output().stderr).not.toContain(server.platform.credentials.api_key)
})

it("pages and their files are not logged at info", async () => {
  const quiet = ["/dashboard", "/openapi.json", "/healthz", "/metrics"]
  for (const path of quiet) await (await fetch(server.platform.url + path)).text()
  await server.client.models.list()
  const routes = () => server.finished().map(({ route, status }) => `${status} ${route}`)
  await vi.waitFor(() => expect(routes()).toContain("200 /v1/models"))
  expect(routes().filter((route) => quiet.some((path) => route === `200 ${path}`))).toEqual([])
})

describe("traces", () => {
  const attributes = (of: (typeof server.collector.spans)[number]) =>
    Object.fromEntries(of.attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

  it("continue the client's, with a span for each stage inside of the request", async () => {
    const mine = () => server.collector.spans.filter((span) => span.traceId === clientTrace)
    await vi.waitFor(() => expect(mine().length).toBeGreaterThan(0), { timeout: 10_000 })
    const request = mine().find(({ kind }) => kind === 2)!
    expect(request).toMatchObject({
      name: "POST /v1/chat/completions",
      parentSpanId: clientSpan,
      status: { code: 0 },
    })
    expect(attributes(request)).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "svc-lyt",
      "gen_ai.usage.input_tokens": 4,
      "gen_ai.usage.output_tokens": 3,
      "http.response.status_code": 200,
    })
    const stages = mine().filter(({ kind }) => kind === 1)
    expect(stages.map(({ name }) => name)).toEqual([
      "auth",
      "body",
      "plan",
      "limits",
      "hold",
      "settle",
    ])
    for (const stage of stages) {
      expect(stage.parentSpanId).toBe(request.spanId)
      expect(BigInt(stage.startTimeUnixNano)).toBeGreaterThanOrEqual(
        BigInt(request.startTimeUnixNano) - 1_000_000n,
      )
      expect(BigInt(stage.endTimeUnixNano)).toBeLessThanOrEqual(
        BigInt(request.endTimeUnixNano) + 1_000_000n,
      )
    }
  })

  it("hold no prompt and no key, and are flushed when the server stops", async () => {
    await server.client.embeddings.create({ model: "svc-embed", input: ["the very last one"] })
    const before = server.collector.spans.length
    await server.platform.stop()
    expect(server.collector.spans.length).toBeGreaterThan(before)
    const all = server.collector.bodies.join("\n")
    for (const secret of [
      server.platform.credentials.api_key,
      scrapeToken,
      collectorKey,
      "one two three",
    ])
      expect(all).not.toContain(secret)
    expect(server.collector.headers.every((header) => header["x-api-key"] === collectorKey)).toBe(
      true,
    )
    expect(all).toContain('"stringValue":"test"')
  })
})
