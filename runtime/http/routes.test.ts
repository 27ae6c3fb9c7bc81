import { afterAll, beforeAll, expect, test } from "vitest"
import { errorOutcome } from "./testing/error-outcome.ts"
import { echo, type HttpFixture, openHttpFixture, post, thing } from "./testing/fixture.ts"
import { raw } from "./testing/raw.ts"

let fixture: HttpFixture
beforeAll(async () => {
  fixture = await openHttpFixture({ endpoints: [echo, thing] })
})
afterAll(() => fixture.close())

const ok = JSON.stringify({ model: "m" })

test("routes and methods", async () => {
  const call = (method: string, path: string) => fetch(fixture.url + path, { method })
  expect(await errorOutcome(await call("GET", "/nowhere"))).toEqual([404, "not_found", null])
  expect(await errorOutcome(await call("GET", "/V1/echo"))).toEqual([404, "not_found", null])
  const wrong = await call("GET", "/v1/echo")
  expect(wrong.headers.get("allow")).toBe("POST, OPTIONS")
  expect(await errorOutcome(wrong)).toEqual([405, "method_not_allowed", null])
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

test("the root sends browsers to the dashboard, where there is one, and says where to look to others", async () => {
  const page = await openHttpFixture({ endpoints: [{ ...thing, path: "/dashboard" }] })
  const root = (url: string, accept: string | undefined) =>
    fetch(`${url}/`, { redirect: "manual", ...(accept !== undefined && { headers: { accept } }) })
  const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
  for (const accept of [chrome, "text/html", "TEXT/HTML;q=0.9"]) {
    const { status, headers } = await root(page.url, accept)
    expect([accept, status, headers.get("location"), headers.get("vary")]).toEqual([
      ...[accept, 302, "/dashboard", "accept"],
    ])
    expect((await root(fixture.url, accept)).status).toBe(200)
  }
  for (const accept of [undefined, "*/*", "application/json", "text/html;q=0", "text/plain"])
    expect(await (await root(page.url, accept)).json()).toMatchObject({ openapi: "/openapi.json" })
  await page.close()
})
