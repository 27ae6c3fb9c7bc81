import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { request } from "undici"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import { type HttpFixture, openHttpFixture, thing } from "../testing/fixture.ts"
import { codingFor } from "./content-coding.ts"

const text = Buffer.from("the same words for everybody ".repeat(100))
const shared = (path: string, bytes: Uint8Array, mediaType: string, isShared = true) =>
  defineEndpoint({
    ...thing,
    id: `page${path}`,
    path,
    plan: () =>
      Effect.succeed({
        bound: {},
        run: Effect.succeed({
          status: 200,
          mediaType,
          headers: { etag: '"a"' },
          bytes: Stream.make(bytes),
          ...(isShared && { shared: bytes }),
        }),
      }),
  })

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({
    endpoints: [
      thing,
      shared("/text", text, "text/html; charset=utf-8"),
      shared("/own", text, "text/html; charset=utf-8", false),
      shared("/png", text, "image/png"),
      shared("/short", Buffer.from("short"), "text/plain"),
    ],
  })
})
afterAll(() => fixture.close())

// undici's request, unlike fetch, leaves the bytes as they came
const ask = async (path: string, headers: Record<string, string> = {}, method = "GET" as const) => {
  const reply = await request(fixture.url + path, { method, headers })
  const bytes = Buffer.from(await reply.body.arrayBuffer())
  return { status: reply.statusCode, headers: reply.headers, bytes }
}

it.each([
  ["br, gzip", "br", brotliDecompressSync],
  ["gzip, deflate", "gzip", gunzipSync],
])("Accept-Encoding: %s is sent %s, with a tag of its own", async (accepted, coding, unpack) => {
  const { status, headers, bytes } = await ask("/text", { "accept-encoding": accepted })
  expect([status, headers["content-encoding"], headers.etag]).toEqual([
    200,
    coding,
    `"a-${coding}"`,
  ])
  expect([headers.vary, headers["content-type"]]).toEqual([
    "Accept-Encoding",
    "text/html; charset=utf-8",
  ])
  expect(Number(headers["content-length"])).toBe(bytes.length)
  expect(bytes.length).toBeLessThan(text.length / 10)
  expect(unpack(bytes)).toEqual(text)
})

it("without Accept-Encoding the bytes are sent as they are, and caches are kept apart", async () => {
  const { headers, bytes } = await ask("/text")
  expect([headers["content-encoding"], headers.etag, headers.vary]).toEqual([
    undefined,
    '"a"',
    "Accept-Encoding",
  ])
  expect(bytes).toEqual(text)
})

it("304 to a client that has this coding; the other coding's tag is another representation", async () => {
  const known = (etag: string) => ask("/text", { "accept-encoding": "gzip", "if-none-match": etag })
  const { status, headers, bytes } = await known('"a-gzip"')
  expect([status, bytes.length, headers.etag, headers.vary]).toEqual([
    304,
    0,
    '"a-gzip"',
    "Accept-Encoding",
  ])
  expect([headers["content-encoding"], headers["content-length"]]).toEqual([undefined, undefined])
  expect((await known('"a-br"')).status).toBe(200)
})

it("HEAD says what GET would, without the bytes", async () => {
  const headers = { "accept-encoding": "gzip" }
  const got = await ask("/text", headers)
  const head = await ask("/text", headers, "HEAD" as never)
  expect(head.bytes.length).toBe(0)
  for (const name of ["content-length", "content-encoding", "etag", "content-type", "vary"])
    expect(head.headers[name]).toBe(got.headers[name])
})

it.each(["/own", "/png", "/short", "/v1/things/1"])(
  "no compression of what is not shared, packed already, or short: %s",
  async (path) => {
    const { headers } = await ask(path, { "accept-encoding": "gzip, br" })
    expect([headers["content-encoding"], headers.vary]).toEqual([undefined, undefined])
  },
)

describe("/openapi.json", () => {
  it("is compressed and revalidated", async () => {
    const plain = await ask("/openapi.json")
    const packed = await ask("/openapi.json", { "accept-encoding": "gzip, deflate, br" })
    expect(packed.headers).toMatchObject({
      "content-encoding": "br",
      "content-type": "application/json; charset=utf-8",
      "cache-control": "public, no-cache",
    })
    expect(brotliDecompressSync(packed.bytes)).toEqual(plain.bytes)
    const again = await ask("/openapi.json", {
      "accept-encoding": "gzip, deflate, br",
      "if-none-match": String(packed.headers.etag),
    })
    expect([again.status, again.bytes.length]).toEqual([304, 0])
  })
})

it.each([
  [undefined, undefined],
  ["", undefined],
  ["*", "br"],
  ["identity", undefined],
  ["GZIP", "gzip"],
  ["gzip;q=0, br;q=0", undefined],
  ["br;q=0, *", "gzip"],
  ["gzip;q=1.0, br;q=0.5", "gzip"],
  ["deflate, gzip ; q=0.1", "gzip"],
  ["br;q=abc", "br"],
])("Accept-Encoding %s: %s", (accepted, coding) => expect(codingFor(accepted)).toBe(coding))

it.each(["/text", "/openapi.json", "/nowhere", "/v1/things/none", "/healthz"])(
  "nosniff on every reply: %s",
  async (path) => {
    for (const method of ["GET", "POST", "OPTIONS"] as const) {
      const { headers } = await ask(path, {}, method as never)
      expect(headers["x-content-type-options"]).toBe("nosniff")
    }
  },
)
