import { Effect, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Caller, defaultLimits } from "../../../core/caller.ts"
import { apiError } from "../../../core/errors.ts"
import { echo, type HttpFixture, openHttpFixture, streaming, thing } from "../testing/fixture.ts"
import { isOriginEntry } from "./cors.ts"

const app = "https://app.example.com"
const callerOf = (mode: "live" | "test"): Caller => ({
  tenant: { account: "acc", mode },
  keyId: "key",
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
})
const identity = () => ({
  authenticate: (key: string) =>
    key === "wrong"
      ? Effect.fail(apiError("authentication_error"))
      : Effect.succeed(callerOf(key === "test" ? "test" : "live")),
  resume: () => Effect.succeed(callerOf("live")),
})
const endpoints = [
  echo,
  thing,
  streaming(Stream.make({ n: 1 })),
  { ...thing, id: "things.special", path: "/v1/things/special" },
  { ...thing, id: "mine", path: "/dashboard/mine", access: "session" as const },
  { ...echo, id: "login", path: "/dashboard/login", aliases: [], access: "public" as const },
  { ...thing, id: "all", path: "/admin/all", access: "admin" as const },
]
const serverWith = (origins: readonly string[]) =>
  openHttpFixture({
    endpoints,
    identity,
    sessions: identity,
    corsOrigins: origins,
    publicUrl: "https://api.example.com",
  })

const servers: HttpFixture[] = []
let off: HttpFixture
let listed: HttpFixture
let any: HttpFixture
beforeAll(async () => {
  servers.push(await serverWith([]), await serverWith([app]), await serverWith(["*", app]))
  ;[off, listed, any] = servers as [HttpFixture, HttpFixture, HttpFixture]
})
afterAll(() => Promise.all(servers.map((server) => server.close())))

const corsOf = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-")))

const ask = (
  { url }: HttpFixture,
  path: string,
  { method = "GET", key = "live", ...headers }: Record<string, string> = {},
) =>
  fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(method === "POST" && { "content-type": "application/json" }),
      ...headers,
    },
    ...(method === "POST" && { body: '{"model":"m"}' }),
  })

const preflight = (
  server: HttpFixture,
  path: string,
  origin: string | undefined,
  method = "POST",
) =>
  fetch(server.url + path, {
    method: "OPTIONS",
    headers: {
      ...(origin && { origin }),
      "access-control-request-method": method,
      "access-control-request-headers": "authorization,content-type",
      "access-control-request-private-network": "true",
    },
  })

describe("off, the default", () => {
  it("says nothing about origins, and serves as without", async () => {
    const reply = await ask(off, "/v1/echo", { method: "POST", origin: app })
    expect([reply.status, corsOf(reply.headers), reply.headers.get("vary")]).toEqual([
      200,
      {},
      null,
    ])
    const options = await preflight(off, "/v1/echo", app)
    expect([options.status, corsOf(options.headers)]).toEqual([204, {}])
    expect(options.headers.get("allow")).toBe("POST, OPTIONS")
  })
})

describe("a listed origin", () => {
  it("has its preflight answered with what the path takes, and never credentials", async () => {
    const reply = await preflight(listed, "/v1/echo", app)
    expect([reply.status, await reply.text(), reply.headers.get("vary")]).toEqual([
      204,
      "",
      "Origin",
    ])
    const { "access-control-allow-headers": accepted, ...cors } = corsOf(reply.headers)
    expect(cors).toEqual({
      "access-control-allow-origin": app,
      "access-control-allow-methods": "POST",
      "access-control-max-age": "7200",
    })
    for (const name of [
      "authorization",
      "content-type",
      "idempotency-key",
      "x-dry-run",
      "x-request-id",
      "x-stainless-os",
      "x-stainless-retry-count",
      "x-stainless-timeout",
    ])
      expect(accepted?.split(", ")).toContain(name)
    // of the second path there are two routes
    for (const path of ["/v1/things/1", "/v1/things/special"]) {
      const get = await preflight(listed, path, app, "GET")
      expect(get.headers.get("access-control-allow-methods")).toBe("GET, HEAD")
    }
  })

  it.each([
    ["/v1/echo", { method: "POST" }, 200],
    ["/v1/stream", { method: "POST" }, 200],
    ["/v1/things/1", {}, 200],
    ["/v1/things/none", {}, 404],
    ["/v1/echo", { method: "POST", key: "wrong" }, 401],
    ["/v1/echo", { method: "POST", "content-type": "text/plain" }, 415],
    ["/v1/echo", { method: "DELETE" }, 405],
    ["/nowhere", {}, 404],
    [`/${"x".repeat(9_000)}`, {}, 414],
    ["/openapi.json", {}, 200],
  ])("reads replies and errors of %.20s %j", async (path, init, status) => {
    const reply = await ask(listed, path, { ...init, origin: app } as never)
    await reply.text()
    expect(reply.status).toBe(status)
    const { "access-control-expose-headers": exposed, ...cors } = corsOf(reply.headers)
    expect(cors).toEqual({ "access-control-allow-origin": app })
    expect(reply.headers.get("vary")).toMatch(/^Origin(, Accept-Encoding)?$/)
    for (const name of [
      "X-Request-ID",
      "X-Call-ID",
      "X-Cost-IDR",
      "Server-Timing",
      "X-Embedding-Space",
      "x-ratelimit-remaining-requests",
      "Retry-After",
      "retry-after-ms",
      "ETag",
      "Content-Disposition",
    ])
      expect(exposed?.split(", ")).toContain(name)
  })

  it.each(["/dashboard/mine", "/dashboard/login", "/admin/all", "/healthz", "/readyz", "/metrics"])(
    "never reaches sessions, sign-ins, administration and what operators see: %s",
    async (path) => {
      const method = path === "/dashboard/login" ? "POST" : "GET"
      const reply = await ask(listed, path, { origin: app, method })
      expect([corsOf(reply.headers), reply.headers.get("vary")]).toEqual([{}, "Origin"])
      expect(corsOf((await preflight(listed, path, app, method)).headers)).toEqual({})
      expect(corsOf((await ask(listed, path, { origin: app, method: "PUT" })).headers)).toEqual({})
    },
  )
})

it.each([
  undefined,
  "null",
  "https://evil.example.com",
  "http://app.example.com",
  "https://app.example.com:8443",
  "https://app.example.com.evil.com",
  "https://APP.example.com",
])("an origin that is not listed gets no CORS header: %s", async (origin) => {
  const reply = await ask(listed, "/v1/echo", { method: "POST", ...(origin && { origin }) })
  expect([reply.status, corsOf(reply.headers), reply.headers.get("vary")]).toEqual([
    200,
    {},
    "Origin",
  ])
  const options = await preflight(listed, "/v1/echo", origin)
  expect([options.status, corsOf(options.headers)]).toEqual([204, {}])
})

describe("*", () => {
  const other = "https://other.example.org"
  const post = (more: Record<string, string>) => ask(any, "/v1/echo", { method: "POST", ...more })

  it.each([other, "null"])("takes test keys from %s, and refuses live ones", async (origin) => {
    const fine = await post({ origin, key: "test" })
    expect([fine.status, fine.headers.get("access-control-allow-origin")]).toEqual([200, "*"])
    const refused = await post({ origin })
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, "*"])
    expect(await refused.json()).toMatchObject({
      error: { code: "origin_not_allowed", type: "permission_error" },
    })
    expect(
      (await preflight(any, "/v1/echo", origin)).headers.get("access-control-allow-origin"),
    ).toBe("*")
  })

  it("takes live keys from servers, the listed origin, and its own pages", async () => {
    expect((await post({})).status).toBe(200)
    const fromListed = await post({ origin: app })
    expect([fromListed.status, fromListed.headers.get("access-control-allow-origin")]).toEqual([
      200,
      app,
    ])
    expect((await post({ origin: any.url })).status).toBe(200)
    expect((await post({ origin: "https://api.example.com" })).status).toBe(200)
  })

  it("public routes are for everybody, whatever is in Authorization", async () => {
    const reply = await ask(any, "/v1/things/1", { origin: other })
    expect([reply.status, reply.headers.get("access-control-allow-origin")]).toEqual([200, "*"])
  })
})

it.each([
  ["*", true],
  ["https://app.example.com", true],
  ["https://app.example.com:8443", true],
  ["https://xn--bcher-kva.example", true],
  ["http://localhost:5173", true],
  ["http://127.0.0.1", true],
  ["http://[::1]:3000", true],
  ["https://[2001:db8::1]", true],
  ["", false],
  ["null", false],
  ["app.example.com", false],
  ["http://app.example.com", false],
  ["https://app.example.com/", false],
  ["https://app.example.com/path", false],
  ["https://app.example.com:443", false],
  ["https://App.example.com", false],
  ["https://*.example.com", false],
  ["https://user@app.example.com", false],
  ["https://app.example.com?x", false],
  ["https://app.example.com#x", false],
  ["https://bücher.example", false],
  ["https://app.example.com:99999", false],
  ["file://", false],
  ["ftp://app.example.com", false],
  [" https://app.example.com", false],
])("server.cors.origins takes %j: %s", (text, fits) => expect(isOriginEntry(text)).toBe(fits))
