import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Exit, Redacted, Scope } from "effect"
import { afterEach, expect, it, vi } from "vitest"
import { type FakeLog, fakeLog } from "../../testing/fakes/log.ts"
import { openTraceExporter } from "./trace-exporter.ts"

interface Received {
  readonly url: string | undefined
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

const closing: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A collector as a server of its own. */
const collector = async (reply: (res: ServerResponse) => void) => {
  const received: Received[] = []
  const server = createServer(async (req, res) => {
    let body = ""
    for await (const piece of req) body += piece
    received.push({ url: req.url, headers: req.headers, body })
    reply(res)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url }
}

const open = async (endpoint: string, flushMs = 3_000, log: FakeLog = fakeLog()) => {
  const scope = Scope.makeUnsafe()
  const headers = { "x-api-key": Redacted.make("collector-secret") }
  const send = await Effect.runPromise(
    openTraceExporter({
      config: { endpoint, headers, sampleRatio: 1, serviceName: "" },
      serviceName: "rakit-test",
      serviceVersion: "1.2.3",
      log,
      flushMs,
    }).pipe(Scope.provide(scope)),
  )
  return { send, log, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

const spansIn = ({ body }: Received): readonly { readonly name: string }[] =>
  JSON.parse(body).resourceSpans[0].scopeSpans[0].spans
const manySpans = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `span ${index}` }))

it("posts spans as OTLP/JSON, with the headers, and flushes them when it is closed", async () => {
  const { received, url } = await collector((res) => res.end("{}"))
  const exporter = await open(url)
  exporter.send([{ name: "a" }, { name: "b" }])
  await exporter.close()
  expect(received).toHaveLength(1)
  expect(received[0]).toMatchObject({
    url: "/v1/traces",
    headers: { "content-type": "application/json", "x-api-key": "collector-secret" },
  })
  expect(spansIn(received[0]!)).toEqual([{ name: "a" }, { name: "b" }])
  expect(JSON.parse(received[0]!.body).resourceSpans[0].resource.attributes).toContainEqual({
    key: "service.name",
    value: { stringValue: "rakit-test" },
  })
  expect(exporter.log.lines).toEqual([])
})

it("sends a full batch at once, without waiting for its time", async () => {
  const { received, url } = await collector((res) => res.end("{}"))
  const exporter = await open(`${url}/v1/traces`)
  exporter.send(manySpans(512))
  await vi.waitUntil(() => received.length === 1)
  expect(received[0]!.url).toBe("/v1/traces")
  expect(spansIn(received[0]!)).toHaveLength(512)
  await exporter.close()
})

it("keeps a bounded number of spans between two exports", async () => {
  const { received, url } = await collector((res) => res.end("{}"))
  const exporter = await open(url, 200)
  for (let i = 0; i < 100; i++) exporter.send(manySpans(100))
  await exporter.close()
  const sent = received.reduce((sum, one) => sum + spansIn(one).length, 0)
  expect(sent).toBeLessThanOrEqual(4_096)
})

it("of a collector that is gone says so once; requests go on, and so does closing", async () => {
  const { url } = await collector((res) => res.end())
  for (const close of closing.splice(0)) await close()
  const { send, log, close } = await open(url, 200)
  send(manySpans(600))
  await vi.waitUntil(() => log.lines.length > 0, { timeout: 10_000 })
  for (let i = 0; i < 20; i++) send(manySpans(600))
  await close()
  expect(log.lines).toMatchObject([
    {
      level: "warn",
      event: "otel.export_failed",
      fields: { endpoint: url, reason: "ECONNREFUSED" },
    },
  ])
  expect(JSON.stringify(log.lines)).not.toContain("collector-secret")
})

it("does not wait for a collector that never answers: closing is bounded", async () => {
  const { received, url } = await collector(() => {})
  const { send, close } = await open(url, 200)
  send(manySpans(512))
  await vi.waitUntil(() => received.length === 1)
  await close()
}, 15_000)
