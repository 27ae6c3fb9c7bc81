import { Effect, Schema, Stream } from "effect"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint } from "../../core/ports/endpoint.ts"
import { errorOutcome } from "./testing/error-outcome.ts"
import {
  authorized,
  echo,
  goodKey,
  type HttpFixture,
  openHttpFixture,
  post,
  thing,
} from "./testing/fixture.ts"

const faulty = (id: string, run: Effect.Effect<never, ReturnType<typeof apiError>>) =>
  defineEndpoint({
    ...thing,
    id,
    path: `/v1/${id}`,
    plan: () => Effect.succeed({ bound: {}, run }),
  })
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

const choosy = defineEndpoint({
  ...echo,
  id: "choosy",
  path: "/v1/choosy",
  aliases: [],
  query: Schema.Struct({ n: Schema.optionalKey(Schema.Int) }) as never,
  refuses: () => apiError("unsupported_parameter"),
})

let fixture: HttpFixture
beforeAll(async () => {
  const odd = [
    faulty("defect", Effect.die(new Error("secret detail"))),
    faulty("unprintable", Effect.succeed({ status: 200, json: 1n }) as never),
  ]
  fixture = await openHttpFixture({ endpoints: [echo, download, choosy, ...odd] })
})
afterAll(() => fixture.close())
beforeEach(() => (fixture.log.lines as unknown[]).splice(0))

const sent = async (
  body: string | Uint8Array,
  headers: Record<string, string> = authorized,
  path = "/v1/echo",
) => errorOutcome(await post(fixture.url + path, body, headers))
const ok = JSON.stringify({ model: "m" })

test("a body that can't be read is what is refused, whatever else is wrong", async () => {
  expect(await sent("{", authorized, "/v1/choosy?n=x")).toEqual([400, "invalid_json", null])
  expect(await sent(ok, authorized, "/v1/choosy")).toEqual([400, "unsupported_parameter", null])
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

test("an endpoint that throws, or answers what is no JSON, is a 500 without details", async () => {
  for (const path of ["defect", "unprintable"]) {
    const res = await fetch(`${fixture.url}/v1/${path}`)
    const text = await res.clone().text()
    expect(await errorOutcome(res)).toEqual([500, "internal_error", null])
    expect(text).not.toContain("secret")
  }
  expect(JSON.stringify(fixture.log.lines)).toContain("secret detail")
})

test("bytes out: whole, an early error with its status, a late one cuts", async () => {
  const fine = await fetch(`${fixture.url}/v1/download/fine`)
  expect([fine.headers.get("content-type"), await fine.text()]).toEqual(["text/plain", "abcdef"])
  expect(await errorOutcome(await fetch(`${fixture.url}/v1/download/early`))).toEqual([
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
