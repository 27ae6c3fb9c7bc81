import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint } from "../../core/ports/endpoint.ts"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  thing,
} from "./testing/fixture.ts"
import { raw } from "./testing/raw.ts"

const large = defineEndpoint({
  ...echo,
  id: "large",
  path: "/v1/large",
  aliases: [],
  maxBodyBytes: 20 * 2 ** 20,
} as never)
const faulty = (id: string, run: Effect.Effect<never, ReturnType<typeof apiError>>) =>
  defineEndpoint({
    ...thing,
    id,
    path: `/v1/${id}`,
    plan: () => Effect.succeed({ bound: {}, run }),
  })
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
const download = defineEndpoint({
  ...thing,
  id: "download",
  path: "/v1/download/{mode}",
  plan: ({ params }) => {
    const fine = Stream.make(Buffer.from("abc"), Buffer.from("def"))
    const broken = Stream.fail(apiError("storage_full"))
    const stream =
      params.mode === "fine" ? fine : params.mode === "early" ? broken : Stream.concat(fine, broken)
    return Effect.succeed({
      bound: {},
      run: Effect.succeed({ status: 200, bytes: stream, mediaType: "text/plain" }),
    })
  },
})

let fixture: HttpFixture
beforeAll(async () => {
  const odd = [
    faulty("defect", Effect.die(new Error("secret detail"))),
    faulty("unprintable", Effect.succeed({ status: 200, json: 1n }) as never),
  ]
  fixture = await openHttpFixture({
    endpoints: [echo, thing, large, bytes, download, ...odd],
    limits: { maxBufferedBytes: 12 * 2 ** 20 },
    timings: { lingerMs: 300 },
  })
})
afterAll(() => fixture.close())
beforeEach(() => (fixture.log.lines as unknown[]).splice(0))

const outcome = async (res: Response) => {
  const body = (await res.json()) as {
    error: { code: string; param: string | null; message: string; type: string }
    request_id: string
  }
  expect(body.request_id).toBe(res.headers.get("x-request-id"))
  expect(Object.keys(body).sort()).toEqual(["error", "request_id"])
  expect(Object.keys(body.error).sort()).toEqual(["code", "message", "param", "type"])
  return [res.status, body.error.code, body.error.param] as const
}
const sent = async (
  body: string | Uint8Array,
  headers: Record<string, string> = authorized,
  path = "/v1/echo",
) => outcome(await post(fixture.url + path, body, headers))
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
  expect(await outcome(res)).toEqual([413, "payload_too_large", null])
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
  expect(await outcome(endless)).toEqual([413, "payload_too_large", null])
})

test("a large upload without a key is told so", async () => {
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
  let peak = 0
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().arrayBuffers)
  }, 2)
  const before = process.memoryUsage().arrayBuffers
  const packed = { ...authorized, "content-encoding": "gzip" }
  const statuses = await Promise.all(
    Array.from(
      { length: 30 },
      async () => (await post(`${fixture.url}/v1/large`, bomb, packed)).status,
    ),
  )
  clearInterval(watch)
  expect(new Set(statuses)).toEqual(new Set([429]))
  expect(peak - before).toBeLessThan(60 * 2 ** 20)
})

test("keys", async () => {
  const as = (authorization?: string) =>
    sent(ok, {
      "content-type": "application/json",
      ...(authorization !== undefined && { authorization }),
    })
  for (const header of [
    undefined,
    "",
    goodKey,
    `Basic ${goodKey}`,
    "Bearer",
    "Bearer ",
    `Bearer  ${goodKey}`,
    `Bearer ${goodKey} x`,
    `Bearer\t${goodKey}`,
    "Bearer wrong",
  ])
    expect([header, await as(header)]).toEqual([header, [401, "authentication_error", null]])
  expect(
    (
      await post(`${fixture.url}/v1/echo`, ok, {
        ...authorized,
        authorization: `bearer ${goodKey}`,
      })
    ).status,
  ).toBe(200)
  const res = await post(`${fixture.url}/v1/echo`, ok, {})
  expect(res.headers.get("www-authenticate")).toBe("Bearer")
})

test("a failing identity is ours to log, with nothing for the client to see", async () => {
  const res = await post(`${fixture.url}/v1/echo`, ok, {
    ...authorized,
    authorization: "Bearer svc_test_database_down",
  })
  expect(res.status).toBe(500)
  expect(await res.text()).not.toContain("database")
  const line = fixture.log.lines.find(({ level }) => level === "error")
  expect(line?.fields).toMatchObject({
    port: "identity",
    reason: "the database is down",
    request_id: res.headers.get("x-request-id"),
  })
  expect(JSON.stringify(fixture.log.lines)).not.toContain("svc_test_database_down")
})

test("routes and methods", async () => {
  const call = (method: string, path: string) => fetch(fixture.url + path, { method })
  expect(await outcome(await call("GET", "/nowhere"))).toEqual([404, "not_found", null])
  expect(await outcome(await call("GET", "/V1/echo"))).toEqual([404, "not_found", null])
  const wrong = await call("GET", "/v1/echo")
  expect(wrong.headers.get("allow")).toBe("POST, OPTIONS")
  expect(await outcome(wrong)).toEqual([405, "method_not_allowed", null])
  const put = await call("PUT", "/v1/things/1")
  expect(put.headers.get("allow")).toBe("HEAD, GET, OPTIONS")
  const options = await call("OPTIONS", "/v1/things/1")
  expect([options.status, options.headers.get("allow")]).toEqual([204, "HEAD, GET, OPTIONS"])
  const head = await call("HEAD", "/v1/things/1")
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([
    200,
    "10",
    "",
  ])
  expect((await post(`${fixture.url}/v2/echo`, ok)).status).toBe(200)
})

test("odd addresses", async () => {
  const get = (target: string) =>
    raw(fixture.port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  expect(await get("/v1/things/%zz")).toMatchObject({
    status: 400,
    json: { error: { code: "invalid_http" } },
  })
  expect(await get("/v1/things/%C0%AF")).toMatchObject({ status: 400 })
  expect(await get("/v1/things/a%2Fb%20c")).toMatchObject({ status: 200, json: { id: "a/b c" } })
  expect(await get("/v1/things/..%2f..%2fetc")).toMatchObject({
    status: 200,
    json: { id: "../../etc" },
  })
  expect(await get("http://x/v1/things/1")).toMatchObject({ status: 200 })
  expect(await get("/v1/things/1?%zz=%zz&__proto__=1")).toMatchObject({ status: 200 })
  expect(await get("//v1/things/1")).toMatchObject({ status: 404 })
  expect(await get("*")).toMatchObject({ status: 404 })
  expect(await get(`/${"a".repeat(9_000)}`)).toMatchObject({
    status: 414,
    json: { error: { code: "uri_too_long" } },
  })
  expect(await get(`/${"a".repeat(30_000)}`)).toMatchObject({
    status: 431,
    json: { error: { code: "headers_too_large" } },
  })
})

test("request ids: a sane one is echoed, others are replaced", async () => {
  const echoed = async (id: string) =>
    (await fetch(`${fixture.url}/healthz`, { headers: { "x-request-id": id } })).headers.get(
      "x-request-id",
    )
  expect(await echoed("abc-123_.:/=")).toBe("abc-123_.:/=")
  for (const id of [
    "",
    "has space",
    "a".repeat(129),
    "<script>",
    'quote"',
    "back\\slash",
    "caf\u00e9",
  ])
    expect([id, await echoed(id)]).toEqual([id, expect.stringMatching(/^req_[A-Za-z0-9]{24}$/)])
})

test("an endpoint that throws, or answers what is no JSON, is a 500 without details", async () => {
  for (const path of ["defect", "unprintable"]) {
    const res = await fetch(`${fixture.url}/v1/${path}`)
    const text = await res.clone().text()
    expect(await outcome(res)).toEqual([500, "internal_error", null])
    expect(text).not.toContain("secret")
  }
  expect(JSON.stringify(fixture.log.lines)).toContain("secret detail")
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

test("bytes out: whole, an early error with its status, a late one cuts", async () => {
  const fine = await fetch(`${fixture.url}/v1/download/fine`)
  expect([fine.headers.get("content-type"), await fine.text()]).toEqual(["text/plain", "abcdef"])
  expect(await outcome(await fetch(`${fixture.url}/v1/download/early`))).toEqual([
    507,
    "storage_full",
    null,
  ])
  const late = await fetch(`${fixture.url}/v1/download/late`)
  expect(late.status).toBe(200)
  await expect(late.text()).rejects.toThrow()
})

test("dry runs and idempotency keys reach the path", async () => {
  for (const yes of ["1", "true"]) {
    const dry = await post(`${fixture.url}/v1/echo`, ok, { ...authorized, "x-dry-run": yes })
    expect(await dry.json()).toMatchObject({ object: "dry_run", endpoint: "/v1/echo", cost_idr: 1 })
  }
  // never run by mistake
  expect(await sent(ok, { ...authorized, "x-dry-run": "yes" })).toEqual([
    400,
    "invalid_request_error",
    "X-Dry-Run",
  ])
  expect(
    (await post(`${fixture.url}/v1/echo`, ok, { ...authorized, "x-dry-run": "0" })).status,
  ).toBe(200)
  expect(await sent(ok, { ...authorized, "idempotency-key": "k".repeat(256) })).toEqual([
    400,
    "invalid_request_error",
    "Idempotency-Key",
  ])
})

test("lines name the route and the code, never the path, the query or the key", async () => {
  await sent("{", authorized, "/v1/echo?token=private")
  const [line] = fixture.log.lines
  expect(line).toMatchObject({
    message: "request",
    fields: {
      method: "POST",
      route: "/v1/echo",
      status: 400,
      code: "invalid_json",
      duration_ms: expect.any(Number),
    },
  })
  expect(JSON.stringify(fixture.log.lines)).not.toMatch(/private|svc_test/)
})
