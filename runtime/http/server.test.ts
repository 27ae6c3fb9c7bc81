import { Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  streaming,
  thing,
} from "./testing/fixture.ts"
import { openSocket, until } from "./testing/raw.ts"

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [echo, thing, streaming(Stream.make({ n: 1 }, { n: 2 }))],
  })
})
afterAll(() => fixture.close())

test("JSON in, JSON out, with all headers", async () => {
  const res = await post(`${fixture.url}/v1/echo?a=1`, JSON.stringify({ model: "m" }), {
    ...authorized,
    "x-request-id": "mine-1",
  })
  expect(res.status).toBe(200)
  expect(await res.json()).toEqual({ echo: { model: "m" }, query: { a: "1" } })
  expect(Object.fromEntries(res.headers)).toMatchObject({
    "x-request-id": "mine-1",
    "x-cost-idr": "1",
    "x-ratelimit-limit-requests": "60",
    "x-call-id": expect.any(String),
    "content-length": expect.any(String),
  })
})

test("events", async () => {
  const res = await post(`${fixture.url}/v1/stream`, "{}")
  expect(res.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
  expect(await res.text()).toBe('data: {"n":1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n')
})

test("own routes", async () => {
  for (const path of ["/", "/healthz", "/readyz", "/metrics", "/openapi.json"]) {
    const res = await fetch(fixture.url + path)
    expect([path, res.status]).toEqual([path, 200])
  }
})

test("a client that leaves takes along the requests that waited behind its first", async () => {
  const fixture = await openHttpFixture({ endpoints: [streaming(Stream.never), thing] })
  try {
    const body = "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    const stream = `POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\n${body}`
    const socket = await openSocket(fixture.port)
    socket.write(`${stream}${stream}GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n`)
    await until(() => fixture.server.inFlight === 3)
    socket.resetAndDestroy()
    await until(() => fixture.server.inFlight === 0)
    expect(fixture.settlements).toHaveLength(2)
  } finally {
    await fixture.close()
  }
})
