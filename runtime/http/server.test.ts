import { Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import {
  authorized,
  echo,
  type HttpFixture,
  openHttpFixture,
  post,
  streaming,
  thing,
} from "./testing/fixture.ts"

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
