import { inspect } from "node:util"
import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import { makeOutbound } from "../../../runtime/services/outbound/outbound.ts"
import { type ApiFixture, ada, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
beforeAll(async () => {
  api = await openApiFixture()
})
beforeEach(() => api.empty())
afterAll(() => api?.close())

const url = "https://hooks.example.com/in?a=1#b"
const good = { url, events: ["batch.completed"], description: "mine" }
const create = (body: unknown = good, as: Tenant = ada, idempotencyKey?: string) =>
  api.ask("POST /v1/webhooks", {
    as,
    body,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
const refusal = ({ status, json }: Awaited<ReturnType<typeof create>>) => [
  status,
  json.code,
  json.param,
]

describe("a webhook", () => {
  it("has the contract's form, and shows its secret once", async () => {
    const { status, json, headers } = await create()
    const { secret, ...shown } = json
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"])
    expect(secret).toMatch(/^whsec_[A-Za-z0-9]{32}$/)
    expect(shown).toEqual({
      ...{
        id: expect.stringMatching(/^wh-/),
        object: "webhook",
        url,
        events: ["batch.completed"],
        description: "mine",
        status: "active",
      },
      ...{
        last_delivery_at: null,
        last_error: null,
        created_at: Math.floor(api.clock.nowMs() / 1000),
      },
    })
    expect((await api.ask(`GET /v1/webhooks/${shown.id}`)).json).toEqual(shown)
    expect((await api.ask("GET /v1/webhooks")).json).toEqual({
      object: "list",
      data: [shown],
      has_more: false,
      first_id: shown.id,
      last_id: shown.id,
    })
    const { rows } = await sql`SELECT * FROM webhook_registration`.execute(
      api.test.database.queries(),
    )
    expect(inspect(rows, { maxStringLength: null })).not.toContain(secret)
    expect((await api.ask(`DELETE /v1/webhooks/${shown.id}`)).json).toEqual({
      id: shown.id,
      object: "webhook",
      deleted: true,
    })
    expect(refusal(await api.ask(`DELETE /v1/webhooks/${shown.id}`))).toEqual([
      404,
      "not_found",
      null,
    ])
  })

  it("is made once under an Idempotency-Key", async () => {
    const [first, second] = [await create(good, ada, "k"), await create(good, ada, "k")]
    expect(second.json).toEqual(first.json)
    expect((await api.ask("GET /v1/webhooks")).json.data).toHaveLength(1)
    expect(refusal(await create({ ...good, description: "other" }, ada, "k"))).toEqual([
      409,
      "conflict",
      "Idempotency-Key",
    ])
  })

  it("comes in pages, newest first", async () => {
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await create()).json.id)
    const seen: string[] = []
    for (let after = "", more = true; more; ) {
      const { json } = await api.ask(`GET /v1/webhooks?limit=2${after}`)
      seen.push(...json.data.map(({ id }: { id: string }) => id))
      more = json.has_more
      after = `&after=${json.last_id}`
    }
    expect(seen).toEqual(ids)
    for (const limit of ["0", "101", "-1", "1.5", "x", ""])
      expect(refusal(await api.ask(`GET /v1/webhooks?limit=${limit}`)), limit).toEqual([
        400,
        "invalid_request_error",
        "limit",
      ])
    for (const after of ["wh-none", "%00", "x".repeat(300)])
      expect(refusal(await api.ask(`GET /v1/webhooks?after=${after}`))).toEqual([
        400,
        "invalid_request_error",
        "after",
      ])
  })

  it("is invisible to other accounts, and to the other mode", async () => {
    const { id } = (await create()).json
    const receiver = await api.receive()
    const other = await api.register(receiver.url)
    await api.emit()
    await api.advance(0)
    const [delivery] = await api.deliveries(other.id)
    for (const as of [
      { account: "acct_eve", mode: "live" },
      { account: ada.account, mode: "test" },
    ] as const) {
      const mine = (await create(good, as)).json.id
      expect(
        (await api.ask("GET /v1/webhooks", { as })).json.data.map((one: { id: string }) => one.id),
      ).toEqual([mine])
      expect(refusal(await api.ask(`GET /v1/webhooks?after=${id}`, { as }))).toEqual([
        400,
        "invalid_request_error",
        "after",
      ])
      for (const route of [
        ...[
          `GET /v1/webhooks/${id}`,
          `DELETE /v1/webhooks/${id}`,
          `POST /v1/webhooks/${id}/rotate`,
          `POST /v1/webhooks/${id}/test`,
          `GET /v1/webhooks/${id}/deliveries`,
        ],
        ...[
          `POST /v1/webhooks/${other.id}/deliveries/${delivery.id}/redeliver`,
          `POST /v1/webhooks/${mine}/deliveries/${delivery.id}/redeliver`,
        ],
      ])
        expect(refusal(await api.ask(route, { as })), route).toEqual([404, "not_found", null])
      expect(
        refusal(await api.ask(`GET /v1/webhooks/${mine}/deliveries?after=${delivery.id}`, { as })),
      ).toEqual([400, "invalid_request_error", "after"])
    }
    expect(receiver.received).toHaveLength(1)
  })

  it("is one of at most 20 a tenant, also when they are made at once", async () => {
    const replies = await Promise.all(Array.from({ length: 23 }, () => create()))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(refusal(await create())).toEqual([409, "conflict", null])
    expect((await create(good, { account: ada.account, mode: "test" })).status).toBe(200)
    await api.ask(`DELETE /v1/webhooks/${replies.find(({ status }) => status === 200)?.json.id}`)
    expect((await create()).status).toBe(200)
  })
})

describe("bad input", () => {
  it.each<[string, unknown, string | null]>([
    ["no url", { events: ["batch.failed"] }, "url"],
    ["a url of another type", { ...good, url: 5 }, "url"],
    ["no url at all", { ...good, url: "hooks" }, "url"],
    ["http", { ...good, url: "http://example.com/" }, "url"],
    ["another protocol", { ...good, url: "file:///etc/passwd" }, "url"],
    ["user info", { ...good, url: "https://user:secret@example.com/" }, "url"],
    ["loopback", { ...good, url: "https://127.0.0.1/" }, "url"],
    ["loopback in another notation", { ...good, url: "https://0x7f.1/" }, "url"],
    ["a hidden override", { ...good, description: "safe\u202eefas" }, "description"],
    ["an invisible character", { ...good, description: "a\u200bb" }, "description"],
    ["a port of no web server", { ...good, url: "https://hooks.example.com:5432/" }, "url"],
    ["a private address", { ...good, url: "https://10.1.2.3:8443/" }, "url"],
    ["metadata", { ...good, url: "https://169.254.169.254/latest/meta-data" }, "url"],
    ["IPv6 loopback", { ...good, url: "https://[::1]/" }, "url"],
    ["mapped IPv4", { ...good, url: "https://[::ffff:10.0.0.1]/" }, "url"],
    ["NAT64", { ...good, url: "https://[64:ff9b::10.0.0.1]/" }, "url"],
    ["a line break", { ...good, url: "https://example.com/\nx" }, "url"],
    ["a NUL", { ...good, url: "https://example.com/\0" }, "url"],
    ["2,049 characters", { ...good, url: `https://example.com/${"x".repeat(2029)}` }, "url"],
    ["no events", { url }, "events"],
    ["an empty list of events", { ...good, events: [] }, "events"],
    ["an unknown event", { ...good, events: ["batch.completed", "batch.cancelled"] }, "events"],
    ["the test event", { ...good, events: ["webhook.test"] }, "events"],
    ["an event twice", { ...good, events: ["batch.failed", "batch.failed"] }, "events"],
    ["events as a text", { ...good, events: "batch.failed" }, "events"],
    ["null as events", { ...good, events: null }, "events"],
    ["501 characters of description", { ...good, description: "é".repeat(501) }, "description"],
    ["a description of another type", { ...good, description: {} }, "description"],
    ["a NUL in the description", { ...good, description: "a\0" }, "description"],
    ["a list", [], null],
  ])("refuses %s, and makes nothing", async (_, body, param) => {
    expect(refusal(await create(body))).toEqual([400, "invalid_request_error", param])
    expect((await api.ask("GET /v1/webhooks")).json.data).toEqual([])
  })

  it("takes the longest url and description, and null as no description", async () => {
    expect(
      (
        await create({
          ...good,
          url: `https://example.com/${"x".repeat(2028)}`,
          description: "é".repeat(500),
        })
      ).status,
    ).toBe(200)
    expect(
      (await create({ ...good, description: null, unknown: 1, secret: "mine", status: "disabled" }))
        .json,
    ).toMatchObject({ description: null, status: "active" })
  })

  it("lets exact hosts through that the operator allowed, over http too", async () => {
    const before = api.outside.outbound
    api.outside.outbound = makeOutbound(["127.0.0.1:9000"])
    expect((await create({ ...good, url: "http://127.0.0.1:9000/x" })).status).toBe(200)
    expect(refusal(await create({ ...good, url: "http://127.0.0.1:9001/x" }))).toEqual([
      400,
      "invalid_request_error",
      "url",
    ])
    api.outside.outbound = before
  })

  it.each(["wh-unknown", "%00", "x".repeat(300), "'%20OR%201=1", "%F0%9F%94%91"])(
    "404 for the id %s",
    async (id) => {
      const { id: mine } = (await create()).json
      for (const route of [
        `GET /v1/webhooks/${id}`,
        `DELETE /v1/webhooks/${id}`,
        `POST /v1/webhooks/${id}/rotate`,
        `POST /v1/webhooks/${id}/test`,
        `GET /v1/webhooks/${id}/deliveries`,
      ])
        expect(refusal(await api.ask(route))).toEqual([404, "not_found", null])
      expect(
        refusal(await api.ask(`POST /v1/webhooks/${mine}/deliveries/${id}/redeliver`)),
      ).toEqual([404, "not_found", null])
    },
  )
})
