import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
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
import { raw } from "../testing/raw.ts"

const large = defineEndpoint({
  ...echo,
  id: "large",
  path: "/v1/large",
  aliases: [],
  maxBodyBytes: 20 * 2 ** 20,
} as never)
const bytes = defineEndpoint({
  ...echo,
  id: "upload",
  path: "/v1/upload",
  aliases: [],
  body: "bytes",
  plan: (call: { body: unknown }) =>
    Effect.succeed({
      bound: {},
      run: Effect.sync(() => ({ status: 200, json: { bytes: (call.body as Buffer).length } })),
    }),
} as never)

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [echo, large, bytes],
    limits: { maxBufferedBytes: 12 * 2 ** 20 },
    timings: { lingerMs: 300 },
  })
})
afterAll(() => fixture.close())

const sent = async (
  body: string | Uint8Array,
  headers: Record<string, string> = authorized,
  path = "/v1/echo",
) => errorOutcome(await post(fixture.url + path, body, headers))
const ok = JSON.stringify({ model: "m" })

test.each([
  ["empty", ""],
  ["cut", '{"model": '],
  ["words", "hello"],
  ["two values", "{}{}"],
  ["NaN", '{"model": NaN}'],
  ["two byte-order marks", `\ufeff\ufeff${ok}`],
  ["a NUL", "\0"],
])("%s is invalid_json", async (_, body) =>
  expect(await sent(body)).toEqual([400, "invalid_json", null]),
)

test("invalid UTF-8 is invalid_json; one byte-order mark is fine", async () => {
  expect(
    await sent(
      Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
    ),
  ).toEqual([400, "invalid_json", null])
  expect((await post(`${fixture.url}/v1/echo`, `\ufeff${ok}`)).status).toBe(200)
})

test.each([["null"], ["5"], ['"text"'], ["[]"], ["true"]])("%s is no object", async (body) =>
  expect(await sent(body)).toEqual([400, "invalid_request_error", null]),
)

test("wrong and missing fields are named", async () => {
  expect(await sent('{"model": 5}')).toEqual([400, "invalid_request_error", "model"])
  expect(await sent("{}")).toEqual([400, "invalid_request_error", "model"])
  expect(await sent('{"model": "m", "count": 1.5}')).toEqual([
    400,
    "invalid_request_error",
    "count",
  ])
})

test("10,000 levels deep, and 20 MB of brackets", async () => {
  expect(await sent("[".repeat(10_000) + "]".repeat(10_000), authorized, "/v1/large")).toEqual([
    400,
    "invalid_request_error",
    null,
  ])
  expect(
    await sent(
      `{"model":"m","extra":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
      authorized,
      "/v1/large",
    ),
  ).toEqual([400, "invalid_request_error", null])
  const half = 5 * 2 ** 20
  expect(await sent("[".repeat(half) + "]".repeat(half), authorized, "/v1/large")).toEqual([
    400,
    "invalid_request_error",
    null,
  ])
})

test("__proto__ is a key like any other", async () => {
  const res = await post(
    `${fixture.url}/v1/echo`,
    '{"model":"m","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  )
  expect(res.status).toBe(200)
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
})

test("content types", async () => {
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=latin1",
    "json",
  ])
    expect(await sent(ok, { ...authorized, "content-type": type })).toEqual([
      415,
      "unsupported_media_type",
      null,
    ])
  for (const type of [
    "application/json",
    "Application/JSON; charset=UTF-8",
    "application/vnd.api+json",
  ])
    expect(
      (await post(`${fixture.url}/v1/echo`, ok, { ...authorized, "content-type": type })).status,
    ).toBe(200)
  const untyped = await raw(
    fixture.port,
    `POST /v1/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${goodKey}\r\nContent-Length: ${ok.length}\r\nConnection: close\r\n\r\n${ok}`,
  )
  expect(untyped.status).toBe(200)
})

test("gzip: fine, broken, a bomb, and other encodings", async () => {
  const packed = { ...authorized, "content-encoding": "gzip" }
  expect((await post(`${fixture.url}/v1/echo`, gzipSync(ok), packed)).status).toBe(200)
  expect(await sent(ok, packed)).toEqual([400, "invalid_json", null])
  const bomb = gzipSync(Buffer.alloc(500_000, " "))
  expect(bomb.length).toBeLessThan(2048)
  expect(await sent(bomb, packed)).toEqual([413, "payload_too_large", null])
  expect(await sent(ok, { ...authorized, "content-encoding": "br" })).toEqual([
    415,
    "unsupported_media_type",
    null,
  ])
})

test("too large, announced or not: the answer arrives, and the key's rate headers are on it", async () => {
  const body = Buffer.alloc(3_000_000, " ")
  const res = await post(`${fixture.url}/v1/echo`, body)
  expect(res.headers.get("x-ratelimit-limit-requests")).toBe("60")
  expect(await errorOutcome(res)).toEqual([413, "payload_too_large", null])
  const stream = new ReadableStream({
    pull: (controller) => {
      controller.enqueue(new Uint8Array(65_536))
    },
  })
  const endless = await fetch(`${fixture.url}/v1/echo`, {
    method: "POST",
    headers: authorized,
    body: stream,
    duplex: "half",
  } as RequestInit)
  expect(await errorOutcome(endless)).toEqual([413, "payload_too_large", null])
})

test("a large upload without a key gets its 401", async () => {
  expect(
    await sent(Buffer.alloc(30_000_000), { "content-type": "application/json" }, "/v1/large"),
  ).toEqual([401, "authentication_error", null])
  expect(await sent(Buffer.alloc(30_000_000), authorized, "/nowhere")).toEqual([
    404,
    "not_found",
    null,
  ])
})

test("all bodies together have a limit, which is given back", async () => {
  const body = JSON.stringify({ model: "m", extra: "x".repeat(8_000_000) })
  const statuses = await Promise.all(
    [1, 2, 3].map(async () => (await post(`${fixture.url}/v1/large`, body)).status),
  )
  expect(statuses).toContain(200)
  expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
  expect((await post(`${fixture.url}/v1/large`, body)).status).toBe(200)
})

test("packed bodies count with what they unpack to, while they do", async () => {
  const bomb = gzipSync(JSON.stringify({ model: "m", extra: " ".repeat(18_000_000) }))
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const mostBytes = 60 * 2 ** 20
  const before = process.memoryUsage().arrayBuffers
  const more = () => process.memoryUsage().arrayBuffers - before
  let peak = 0
  const watch = setInterval(() => {
    // what was read and dropped waits for a collection, of which a busy machine has few
    if (more() > mostBytes) collect()
    peak = Math.max(peak, more())
  }, 2)
  const packed = { ...authorized, "content-encoding": "gzip" }
  const statuses = await Promise.all(
    Array.from(
      { length: 30 },
      async () => (await post(`${fixture.url}/v1/large`, bomb, packed)).status,
    ),
  )
  clearInterval(watch)
  expect(peak).toBeLessThan(mostBytes)
  expect(statuses.every((status) => status === 429 || status === 413)).toBe(true)
  // 413: the last one alone would still be too large for all the memory, as would each of those
  // that come when nothing is held
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(20)
  // what they held is given back
  const large = JSON.stringify({ model: "m", extra: " ".repeat(8_000_000) })
  expect((await post(`${fixture.url}/v1/large`, gzipSync(large), packed)).status).toBe(200)
})

test("bytes in", async () => {
  const res = await post(`${fixture.url}/v1/upload`, Buffer.alloc(1000), {
    authorization: `Bearer ${goodKey}`,
    "content-type": "image/png",
  })
  expect(await res.json()).toEqual({ bytes: 1000 })
  expect(await sent(Buffer.alloc(3000), authorized, "/v1/upload")).toEqual([
    413,
    "payload_too_large",
    null,
  ])
})
