import { setTimeout as wait } from "node:timers/promises"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { echo, goodKey, type HttpFixture, openHttpFixture, thing } from "../testing/fixture.ts"
import { openSocket, raw, until } from "../testing/raw.ts"

let fixture: HttpFixture
let interrupted = 0
const slow = defineEndpoint({
  ...thing,
  id: "slow",
  path: "/v1/slow",
  plan: () =>
    Effect.succeed({
      bound: {},
      run: Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => void interrupted++))),
    }),
})
beforeAll(async () => {
  const timings = {
    halfClosedCheckMs: 10,
    headersTimeoutMs: 300,
    requestTimeoutMs: 600,
    timeoutCheckMs: 50,
    keepAliveTimeoutMs: 400,
    lingerMs: 300,
  }
  fixture = await openHttpFixture({
    endpoints: [echo, thing, slow],
    limits: { maxConnections: 40 },
    timings,
  })
})
afterAll(() => fixture.close())

const head = `POST /v1/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\nContent-Type: application/json\r\n`
const alive = async () => expect((await fetch(`${fixture.url}/healthz`)).status).toBe(200)

test.each([
  ["garbage", "\x00\x01\x02garbage\r\n\r\n"],
  ["TLS on a plain port", Buffer.from("16030100f8010000f40303", "hex")],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["HTTP/0.9", "GET /\r\n\r\n"],
  ["an unknown version", "GET / HTTP/9.9\r\nHost: x\r\n\r\n"],
  ["an unknown method", "FETCH / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a header without a colon", "GET / HTTP/1.1\r\nHost x\r\n\r\n"],
  ["a header with a NUL", "GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n"],
  ["two lengths", `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
  ["a length that is no number", `${head}Content-Length: 2x\r\n\r\n{}`],
  ["a negative length", `${head}Content-Length: -1\r\n\r\n{}`],
  [
    "a length and chunks",
    `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ["bad chunks", `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`],
  [
    "a chunk longer than it says",
    `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}}}}\r\n0\r\n\r\n`,
  ],
  ["a bare line feed in the header", `${head}A: b\n c\r\n\r\n`],
])("%s is invalid_http, as JSON, and the connection ends", async (_, bytes) => {
  const answer = await raw(fixture.port, bytes)
  expect(answer).toMatchObject({
    status: 400,
    closed: true,
    json: { error: { code: "invalid_http", type: "invalid_request_error", param: null } },
  })
  expect(answer.text).toMatch(/\r\nConnection: close\r\n/i)
  expect(answer.text.toLowerCase()).toContain(
    `x-request-id: ${answer.json?.request_id?.toLowerCase()}`,
  )
  await alive()
})

test("a HEAD request with headers that are too large gets no body", async () => {
  const long = `HEAD / HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`
  const answer = await raw(fixture.port, long)
  expect(answer).toMatchObject({ status: 431, closed: true })
  expect(answer.text.split("\r\n\r\n")[1]).toBe("")
})

test("no Host, and HTTP/1.0 without one", async () => {
  expect(
    await raw(fixture.port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"),
  ).toMatchObject({ status: 400, json: { error: { code: "invalid_http" } } })
  expect(await raw(fixture.port, "GET /healthz HTTP/1.0\r\n\r\n")).toMatchObject({
    status: 200,
    closed: true,
  })
})

test.each([
  ["Host", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"],
  ["Host, equal", "GET /healthz HTTP/1.1\r\nHost: a\r\nhOST: a\r\nConnection: close\r\n\r\n"],
  ["Authorization", `${head}authorization: Bearer other\r\nContent-Length: 2\r\n\r\n{}`],
  ["Content-Length", `${head}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`],
  [
    "Transfer-Encoding",
    `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  ],
  [
    "chunks and a length, chunks first",
    `${head}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
  ],
  ["chunks that are not last", `${head}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
])("two headers where one may be: %s", async (_, bytes) => {
  expect(await raw(fixture.port, bytes)).toMatchObject({
    status: 400,
    json: { error: { code: "invalid_http" } },
  })
})

test("a flood of headers", async () => {
  const flood = Array.from({ length: 5_000 }, (_, i) => `X-${i}: y\r\n`).join("")
  expect(await raw(fixture.port, `GET /healthz HTTP/1.1\r\nHost: x\r\n${flood}\r\n`)).toMatchObject(
    {
      status: 431,
      closed: true,
      json: { error: { code: "headers_too_large" } },
    },
  )
})

test("a client that sends nothing, half a header, or half a body gets 408 in time", async () => {
  const started = performance.now()
  const [nothing, half, body] = await Promise.all([
    raw(fixture.port, ""),
    raw(fixture.port, "GET /healthz HTTP/1.1\r\nHo"),
    raw(fixture.port, `${head}Content-Length: 100\r\n\r\n{"mod`),
  ])
  for (const answer of [nothing, half, body])
    expect(answer).toMatchObject({
      status: 408,
      closed: true,
      json: { error: { code: "request_timeout" } },
    })
  expect(performance.now() - started).toBeLessThan(2_500)
  await until(() =>
    fixture.log.lines.some(({ message, fields }) => message === "request" && fields.status === 408),
  )
})

test("slowly dripping headers don't win time", async () => {
  const socket = await openSocket(fixture.port)
  let text = ""
  socket.on("data", (chunk) => {
    text += chunk
  })
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n")
  const drip = setInterval(() => socket.write("X-A: b\r\n"), 40)
  await new Promise((resolve) => socket.once("close", resolve))
  clearInterval(drip)
  expect(text).toContain("408")
})

test("a body that ends too early", async () => {
  const socket = await openSocket(fixture.port)
  socket.resume()
  socket.end(`${head}Content-Length: 100\r\n\r\n{}`)
  await new Promise((resolve) => socket.once("close", resolve))
  await alive()
})

test("a client that leaves while it sends its body, or while it waits, is interrupted", async () => {
  const sender = await openSocket(fixture.port)
  sender.write(`${head}Content-Length: 100\r\n\r\n{"mod`)
  const waiter = await openSocket(fixture.port)
  waiter.write("GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n")
  await wait(50)
  sender.destroy()
  waiter.destroy()
  const statuses = () =>
    fixture.log.lines
      .filter(({ fields }) => fields.route === "/v1/slow")
      .map(({ fields }) => fields.status)
  await until(() => interrupted === 1 && statuses().includes(499))
  await until(() => fixture.server.inFlight === 0)
  expect(await fixture.metrics.expose()).toContain("rakit_http_requests_in_flight 0")
})

test("Expect: 100-continue: the body is asked for only if it is wanted", async () => {
  const expecting = (length: number, key = goodKey) =>
    `POST /v1/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n`
  const wanted = await raw(fixture.port, [
    `${expecting(13)}Connection: close\r\n\r\n`,
    '{"model":"m"}',
  ])
  expect(wanted.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/)
  for (const refused of [
    await raw(fixture.port, `${expecting(1e9)}\r\n`),
    await raw(fixture.port, `${expecting(13, "wrong")}Connection: close\r\n\r\n`),
  ]) {
    expect(refused.text).not.toContain("100 Continue")
    expect([413, 401]).toContain(refused.status)
    expect(refused.closed).toBe(true)
  }
})

test("an endless body after a refusal is thrown away for a while, then the connection ends", async () => {
  const socket = await openSocket(fixture.port)
  let text = ""
  socket.on("data", (chunk) => {
    text += chunk
  })
  socket.write("POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
  const chunk = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`
  const push = setInterval(() => socket.writableLength < 1e6 && socket.write(chunk), 1)
  await new Promise((resolve) => socket.once("close", resolve))
  clearInterval(push)
  expect(text).toContain("404")
  expect(text).toContain("not_found")
})

test("pipelined requests are answered in order; a broken one after them does not spoil the replies before it", async () => {
  const get = (id: number) => `GET /v1/things/${id} HTTP/1.1\r\nHost: x\r\n\r\n`
  const fine = await raw(
    fixture.port,
    get(1) + get(2) + get(3).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
  )
  expect([...fine.text.matchAll(/"id":"(\d)"/g)].map((m) => m[1])).toEqual(["1", "2", "3"])
  const spoiled = await raw(fixture.port, `${get(1)}garbage\r\n\r\n`)
  expect(spoiled.closed).toBe(true)
  expect(spoiled.text.split("HTTP/1.1 ").length - 1).toBeLessThanOrEqual(2)
  await alive()
})

test("CONNECT and upgrades", async () => {
  expect(
    await raw(fixture.port, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"),
  ).toMatchObject({ status: 405, closed: true })
  expect(
    await raw(
      fixture.port,
      "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
      500,
    ),
  ).toMatchObject({ status: 200 })
})

test("idle connections are closed", async () => {
  const answer = await raw(fixture.port, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
  expect(answer).toMatchObject({ status: 200, closed: true })
})

test("too many connections: the newest are closed, the others work", async () => {
  const sockets = await Promise.all(Array.from({ length: 40 }, () => openSocket(fixture.port)))
  const refused = await raw(fixture.port, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 1_000)
  expect(refused).toMatchObject({ status: 0, closed: true })
  for (const socket of sockets) socket.destroy()
  await wait(50)
  await alive()
})
