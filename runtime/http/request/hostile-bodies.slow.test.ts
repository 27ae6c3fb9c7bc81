import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { errorOutcome } from "../testing/error-outcome.ts"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
} from "../testing/fixture.ts"
import { openSocket, raw, until } from "../testing/raw.ts"

const megabyte = 2 ** 20

let arrived: unknown
const large = defineEndpoint({
  ...echo,
  id: "large",
  path: "/v1/large",
  aliases: [],
  maxBodyBytes: 20 * megabyte,
  maxTextBytes: 8 * megabyte,
  plan: (call: { body: unknown }) =>
    Effect.succeed({
      bound: {},
      run: Effect.sync(() => {
        arrived = call.body
        return { status: 200, json: {} }
      }),
    }),
} as never)

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [echo, large],
    limits: { maxBufferedBytes: 40 * megabyte, maxBufferedBytesPerAccount: 20 * megabyte },
    timings: { lingerMs: 100 },
  })
})
afterAll(() => fixture.close())

const outcome = async (body: string | Uint8Array, headers: Record<string, string> = authorized) =>
  errorOutcome(await post(`${fixture.url}/v1/large`, body, headers))
const head = (length: number, more = "") =>
  `POST /v1/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`
const keys = (count: number, key: (i: number) => string) =>
  `{"model":"m","z":{${Array.from({ length: count }, (_, i) => `"${key(i)}":1`).join()}}}`

/** Counts how often the event loop goes round meanwhile. */
const loopsDuring = async (work: () => Promise<unknown>): Promise<number> => {
  let loops = 0
  let isOver = false
  const go = () => {
    loops++
    if (!isOver) setImmediate(go)
  }
  setImmediate(go)
  await work()
  isOver = true
  return loops
}

test.each([
  ["990,000 keys", keys(990_000, String), "keys"],
  ["50,000 keys", keys(50_000, (i) => `k${i}`), "keys"],
  [
    "250,000 tool properties",
    keys(250_000, (i) => `p${i}`).replaceAll(":1", ':{"type":"string"}'),
    "keys",
  ],
  ["a million numbers", `{"model":"m","z":[${"1,".repeat(1e6)}1]}`, "values"],
  ["a million objects", `{"model":"m","z":[${"{},".repeat(1e6)}{}]}`, "objects"],
  ["a thousand levels", `{"model":"m","z":${"[".repeat(1e3)}${"]".repeat(1e3)}}`, "deeper"],
])("%s are refused by name, packed too", async (_, body, word) => {
  for (const [bytes, headers] of [
    [body, authorized],
    [gzipSync(body), { ...authorized, "content-encoding": "gzip" }],
  ] as const) {
    const reply = await post(`${fixture.url}/v1/large`, bytes, headers)
    const { error } = (await reply.json()) as { error: { code: string; message: string } }
    expect([reply.status, error.code]).toEqual([400, "invalid_request_error"])
    expect(error.message).toContain(word)
  }
})

test("text over its limit is 413; the same as a data URI arrives, and whole", async () => {
  const text = "kata ".repeat(2 * megabyte)
  expect(await outcome(JSON.stringify({ model: "m", extra: text }))).toEqual([
    413,
    "payload_too_large",
    null,
  ])
  const image = `data:image/png;base64,${"QUJD".repeat(3 * megabyte)}`
  const body = JSON.stringify({ model: "m", extra: [image, { text: "é" }] })
  expect((await post(`${fixture.url}/v1/large`, body)).status).toBe(200)
  expect((arrived as { extra: unknown[] }).extra[0] === image).toBe(true)
})

test("a large body is read in pieces, between which the event loop goes round", async () => {
  const body = JSON.stringify({ model: "m", extra: "x".repeat(7 * megabyte) })
  const loops = await loopsDuring(async () => {
    expect((await post(`${fixture.url}/v1/large`, body)).status).toBe(200)
  })
  // the client's part takes some, too
  expect(loops).toBeGreaterThan((7 * megabyte) / (8 * 64 * 1024))
})

test("what has no room is refused by its announced length, before any of it is asked for", async () => {
  const holding = await openSocket(fixture.port)
  holding.write(`${head(15 * megabyte)}{`)
  await until(() => fixture.server.inFlight === 1)
  const expecting = await raw(fixture.port, head(10 * megabyte, "Expect: 100-continue\r\n"), 1_000)
  expect(expecting.text).toMatch(/^HTTP\/1.1 429/)
  expect(expecting.text).toMatch(/retry-after: 2/i)
  expect(expecting.json?.error?.code).toBe("concurrency_exceeded")
  // small ones have memory of their own
  expect((await post(`${fixture.url}/v1/large`, '{"model":"m"}')).status).toBe(200)
  holding.destroy()
  await until(() => fixture.server.inFlight === 0)
  const fits = await raw(fixture.port, head(10 * megabyte, "Expect: 100-continue\r\n"), 200)
  expect(fits.text).toMatch(/^HTTP\/1.1 100/)
  await until(() => fixture.server.inFlight === 0)
})

test.each([
  ["that stops", "[".padEnd(100_000)],
  ["that is announced and never comes", ""],
])("a large body %s is 408, and gives its memory back", async (_, begun) => {
  const own = await openHttpFixture({
    endpoints: [large],
    timings: { lingerMs: 100, bodyStallMs: 50 },
  })
  const stalled = await raw(own.port, [head(15 * megabyte), begun])
  expect([stalled.status, stalled.json?.error?.code]).toEqual([408, "request_timeout"])
  await until(() => own.server.inFlight === 0)
  expect(await own.metrics.expose()).toMatch(/^rakit_http_body_bytes 0$/m)
  await own.close()
})

test("a small body holds what has arrived of it, not what is announced", async () => {
  const slow = await openSocket(fixture.port)
  slow.write(`${head(60_000)}[1,`)
  await expect.poll(fixture.metrics.expose).toMatch(/^rakit_http_body_bytes 3$/m)
  slow.destroy()
  await until(() => fixture.server.inFlight === 0)
})

test("endless members without content are no way around the limit of a packed body", async () => {
  const empty = gzipSync("")
  const members = Buffer.concat(Array(Math.ceil((21 * megabyte) / empty.length)).fill(empty))
  const stream = new ReadableStream({
    start: (controller) => {
      for (let at = 0; at < members.length; at += 65_536)
        controller.enqueue(members.subarray(at, at + 65_536))
      controller.close()
    },
  })
  const reply = await fetch(`${fixture.url}/v1/large`, {
    method: "POST",
    headers: { ...authorized, "content-encoding": "gzip" },
    body: stream,
    duplex: "half",
  } as RequestInit)
  expect(await errorOutcome(reply)).toEqual([413, "payload_too_large", null])
})

test("an Idempotency-Key knows a large body again, and another one under it", async () => {
  const creating = defineEndpoint({ ...large, creates: true } as never)
  const own = await openHttpFixture({ endpoints: [creating] })
  const ask = async (body: string) =>
    (await post(`${own.url}/v1/large`, body, { ...authorized, "idempotency-key": "k" })).status
  const body = (letter: string) => JSON.stringify({ model: "m", extra: letter.repeat(300_000) })
  expect([await ask(body("a")), await ask(body("a")), await ask(body("b"))]).toEqual([
    200, 200, 409,
  ])
  await own.close()
})
