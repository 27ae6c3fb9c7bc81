import { inspect } from "node:util"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Caller, isApiError } from "../../../core/index.ts"
import { sha256Of } from "../api-key.ts"
import { makeIdentity } from "../identity.ts"
import { makeKeyRows } from "../key-rows.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
let ada: Caller
beforeAll(async () => {
  api = await openApiFixture({ testKeys: { models: ["svc-lyt"], rpd: 50 } })
})
afterAll(() => api?.close())
beforeEach(async () => {
  ada = await api.makeAccount()
})

const create = async (body: object = { name: "k" }, as = ada) => {
  const { status, json } = await api.ask("POST /dashboard/keys", { as, body })
  expect([status, json]).toEqual([201, expect.anything()])
  return json
}
const patch = (id: string, body: object, as = ada) =>
  api.ask(`PATCH /dashboard/keys/${id}`, { as, body })
const revoke = (id: string, as = ada) => api.ask(`DELETE /dashboard/keys/${id}`, { as })
const list = (query = "", as = ada) => api.ask(`GET /dashboard/keys${query}`, { as })
/** The same deployment's other server: its own connections and its own cache. */
const elsewhereOf = async ({ clock, openAgain }: ApiFixture) => {
  const identity = makeIdentity(makeKeyRows(await openAgain()), { note: () => {} }, clock)
  return (key: string) =>
    Effect.runPromise(
      identity
        .authenticate(key)
        .pipe(Effect.catch((error) => Effect.succeed(isApiError(error) ? error.code : error))),
    )
}
const refusal = ({ status, json }: Awaited<ReturnType<typeof list>>) => [
  status,
  json.code,
  json.param,
]

describe("a key", () => {
  it("has exactly the contract's form, and shows itself once", async () => {
    const made = await create({ name: " laptop " })
    const { key, ...shown } = made
    expect(key).toMatch(/^svc_live_[A-Za-z0-9]{32}$/)
    expect(shown).toEqual({
      id: expect.stringMatching(/^key_/),
      object: "api_key",
      name: "laptop",
      prefix: key.slice(0, 12),
      test: false,
      scopes: ["*"],
      limits: { rpm: 60, rpd: 10_000, concurrency: 10, monthly_cap_idr: 1_000_000 },
      spent_this_month_idr: 0,
      created_at: Math.floor(api.clock.nowMs() / 1000),
      last_used_at: null,
      revoked_at: null,
    })
    expect((await list()).json).toEqual({
      object: "list",
      data: [shown],
      has_more: false,
      first_id: shown.id,
      last_id: shown.id,
    })
    const row = await api.tables
      .selectFrom("accounts_key")
      .selectAll()
      .where("id", "=", shown.id)
      .executeTakeFirstOrThrow()
    expect(row.sha256).toEqual(sha256Of(key))
    expect(inspect([row, await api.audit(), api.fake.log.lines], { depth: 9 })).not.toContain(key)
  })

  it("takes limits, a part of them, and the sandbox", async () => {
    const made = await create({
      name: "t",
      test: true,
      limits: { rpm: 5, monthly_cap_idr: 0.5, rpd: null, colour: "red" },
      scopes: null,
      unknown: 1,
    })
    expect(made).toMatchObject({
      test: true,
      limits: { rpm: 5, rpd: 10_000, concurrency: 10, monthly_cap_idr: 0.5 },
      scopes: ["*"],
    })
    expect(await api.authenticate(made.key)).toMatchObject({
      tenant: { mode: "test" },
      limits: { rpm: 5, rpd: 50, monthlyCapMicros: 500_000n },
      models: ["svc-lyt"],
    })
    const live = await create()
    expect(await api.authenticate(live.key)).not.toHaveProperty("models")
  })

  it("changes in parts, on record with what changed only", async () => {
    const { id } = await create({ name: "a", limits: { rpm: 5 } })
    expect((await patch(id, {})).json).toMatchObject({ name: "a" })
    expect((await patch(id, { name: null, limits: null, scopes: null })).json).toMatchObject({
      name: "a",
      limits: { rpm: 5 },
    })
    expect((await patch(id, { limits: { rpm: 5, rpd: null } })).status).toBe(200)
    const { json } = await patch(id, { name: "b", limits: { rpd: 7, monthly_cap_idr: 0 } })
    expect(json).toMatchObject({
      name: "b",
      limits: { rpm: 5, rpd: 7, concurrency: 10, monthly_cap_idr: 0 },
    })
    expect(json).not.toHaveProperty("key")
    expect(await api.audit({ target: id })).toMatchObject([
      {
        action: "key.create",
        actor: ada.tenant.account,
        before: null,
        after: { name: "a", test: false, scopes: ["*"], limits: { rpm: 5 } },
      },
      {
        action: "key.update",
        actor: ada.tenant.account,
        before: { name: "a", limits: { rpd: 10_000, monthly_cap_idr: 1_000_000 } },
        after: { name: "b", limits: { rpd: 7, monthly_cap_idr: 0 } },
      },
    ])
    expect((await api.audit({ target: id }))[1]).toHaveProperty("after", {
      name: "b",
      limits: { rpd: 7, monthly_cap_idr: 0 },
    })
  })

  it("takes effect in this process at once, and elsewhere within 5 s", async () => {
    const { id, key } = await create()
    const elsewhere = await elsewhereOf(api)
    for (const look of [api.authenticate, elsewhere])
      expect(await look(key)).toMatchObject({ limits: { rpm: 60 } })
    await patch(id, { limits: { rpm: 2 } })
    expect(await api.authenticate(key)).toMatchObject({ limits: { rpm: 2 } })
    expect(await elsewhere(key)).toMatchObject({ limits: { rpm: 60 } })
    api.clock.advance(3_000)
    expect(await elsewhere(key)).toMatchObject({ limits: { rpm: 2 } })
    await revoke(id)
    expect(await api.authenticate(key)).toBe("authentication_error")
    api.clock.advance(3_000)
    expect(await elsewhere(key)).toBe("authentication_error")
  })

  it("is revoked once; then nothing of it changes", async () => {
    const { id, name } = await create()
    const { status, json } = await revoke(id)
    expect([status, json]).toEqual([
      200,
      expect.objectContaining({ id, name, revoked_at: Math.floor(api.clock.nowMs() / 1000) }),
    ])
    api.clock.advance(60_000)
    expect((await revoke(id)).json).toEqual(json)
    expect(refusal(await patch(id, { name: "x" }))).toEqual([409, "conflict", null])
    expect((await list()).json.data).toEqual([json])
    expect((await api.audit({ target: id })).map(({ action }) => action)).toEqual([
      "key.create",
      "key.revoke",
    ])
  })

  it("shows what it spent this month", async () => {
    const { id } = await create()
    const { billing } = api.fake
    const spent = billing.spentThisMonth
    billing.spentThisMonth = () => Effect.succeed(new Map([[id, 1_500_001n]]))
    expect((await list()).json.data[0].spent_this_month_idr).toBe(1.500001)
    billing.spentThisMonth = spent
  })
})

describe("bad input", () => {
  it.each<[string, object, string]>([
    ["no name", {}, "name"],
    ["an empty name", { name: "" }, "name"],
    ["blanks", { name: "   " }, "name"],
    ["101 characters", { name: "x".repeat(101) }, "name"],
    ["a line break", { name: "a\r\nset-cookie: b" }, "name"],
    ["a NUL", { name: "a\0" }, "name"],
    ["half a character", { name: "\ud800" }, "name"],
    ["a line separator", { name: "a\u2028b" }, "name"],
    ["a name of another type", { name: 5 }, "name"],
    ["null as a name", { name: null }, "name"],
    ["test as a text", { name: "k", test: "true" }, "test"],
    ["limits as a list", { name: "k", limits: [] }, "limits"],
    ["limits as a text", { name: "k", limits: "60" }, "limits"],
    ["rpm 0", { name: "k", limits: { rpm: 0 } }, "limits.rpm"],
    ["a negative rpm", { name: "k", limits: { rpm: -1 } }, "limits.rpm"],
    ["half an rpm", { name: "k", limits: { rpm: 1.5 } }, "limits.rpm"],
    ["rpm as a text", { name: "k", limits: { rpm: "60" } }, "limits.rpm"],
    ["a huge rpm", { name: "k", limits: { rpm: 1_000_001 } }, "limits.rpm"],
    ["infinite rpd", { name: "k", limits: { rpd: Number.POSITIVE_INFINITY } }, "limits.rpd"],
    ["NaN", { name: "k", limits: { rpd: Number.NaN } }, "limits.rpd"],
    ["rpd above the table's integers", { name: "k", limits: { rpd: 2 ** 31 } }, "limits.rpd"],
    ["no slots", { name: "k", limits: { concurrency: 0 } }, "limits.concurrency"],
    ["too many slots", { name: "k", limits: { concurrency: 1_001 } }, "limits.concurrency"],
    ["a negative cap", { name: "k", limits: { monthly_cap_idr: -0.01 } }, "limits.monthly_cap_idr"],
    ["7 decimals", { name: "k", limits: { monthly_cap_idr: 0.1234567 } }, "limits.monthly_cap_idr"],
    [
      "a cap beyond money",
      { name: "k", limits: { monthly_cap_idr: 1e12 + 1 } },
      "limits.monthly_cap_idr",
    ],
    ["a cap as a text", { name: "k", limits: { monthly_cap_idr: "5" } }, "limits.monthly_cap_idr"],
    ["no scopes", { name: "k", scopes: [] }, "scopes"],
    ["a scope as a text", { name: "k", scopes: "*" }, "scopes"],
    ["an unknown scope", { name: "k", scopes: ["chat.completions", "nope"] }, "scopes[1]"],
    ["a scope of what keys don't reach", { name: "k", scopes: ["models.list"] }, "scopes[0]"],
    ["a scope of the dashboard", { name: "k", scopes: ["dashboard.keys.create"] }, "scopes[0]"],
    ["a scope of another type", { name: "k", scopes: [5] }, "scopes[0]"],
  ])("refuses %s, and nothing changes", async (_, body, param) => {
    expect(refusal(await api.ask("POST /dashboard/keys", { as: ada, body }))).toEqual([
      400,
      "invalid_request_error",
      param,
    ])
    expect((await list()).json.data).toEqual([])
    const { name = "k", ...rest } = body as { name?: unknown }
    const { id } = await create()
    const shown = (await list()).json.data[0]
    const changed = await patch(id, { ...rest, ...(name !== null && { name }) })
    if (!["no name", "null as a name", "test as a text"].includes(_))
      expect(refusal(changed)).toEqual([400, "invalid_request_error", param])
    expect((await list()).json.data[0]).toEqual(shown)
    expect(await api.audit({ target: id })).toHaveLength(1)
  })

  it("assigns nothing that is not the caller's to say", async () => {
    const other = await api.makeAccount()
    const forged = {
      id: "key_mine",
      key: "svc_live_x",
      account_id: other.tenant.account,
      account: other.tenant.account,
      role: "admin",
      balance_idr: 1e6,
      revoked_at: null,
    }
    const more = {
      ...forged,
      prefix: "abc",
      spent_this_month_idr: 5,
      created_at: 1,
      last_used_at: 1,
      playground: true,
      expires_at: 1,
      mode: "test",
      object: "x",
    }
    const made = await create({ name: "k", ...more })
    expect(made).toMatchObject({
      object: "api_key",
      test: false,
      spent_this_month_idr: 0,
      created_at: Math.floor(api.clock.nowMs() / 1000),
      last_used_at: null,
    })
    expect(made.id).not.toBe("key_mine")
    expect(await api.authenticate(made.key)).toMatchObject({ tenant: ada.tenant, role: "user" })
    const { key: _, ...shown } = made
    expect((await patch(made.id, { ...more, test: true })).json).toEqual(shown)
    expect((await list("", other)).json.data).toEqual([])
  })

  it("keeps hostile names as they are", async () => {
    for (const name of [
      "'; DROP TABLE accounts_key; --",
      "<script>alert(1)</script>",
      "=cmd|' /C calc'!A0",
      "%00%0d%0a",
      "🔑".repeat(100),
    ])
      expect((await create({ name })).name).toBe(name)
  })

  it.each(["key_unknown", "%00", "x".repeat(300), "' OR 1=1", "%F0%9F%94%91", "..%2F.."])(
    "404 for the id %s",
    async (id) => {
      for (const reply of [await patch(id, { name: "x" }), await revoke(id)])
        expect(refusal(reply)).toEqual([404, "not_found", null])
    },
  )

  it("another account's key looks like none; the attempt is on record", async () => {
    const eve = await api.makeAccount()
    const { id, key } = await create()
    const before = (await list()).json
    expect(refusal(await patch(id, { name: "mine" }, eve))).toEqual([404, "not_found", null])
    expect(refusal(await revoke(id, eve))).toEqual([404, "not_found", null])
    expect(refusal(await list(`?after=${id}`, eve))).toEqual([
      400,
      "invalid_request_error",
      "after",
    ])
    expect((await list()).json).toEqual(before)
    expect(await api.authenticate(key)).toMatchObject({ tenant: ada.tenant })
    expect(await api.audit({ actor: eve.tenant.account })).toMatchObject([
      { action: "key.deny", target: id, after: { attempt: "update" } },
      { action: "key.deny", target: id, after: { attempt: "revoke" } },
    ])
  })

  it.each(["0", "101", "-1", "1.5", "abc", "", "1e1", " 5", "999999999999", "%00"])(
    "refuses limit=%s",
    async (limit) => {
      expect(refusal(await list(`?limit=${limit}`))).toEqual([
        400,
        "invalid_request_error",
        "limit",
      ])
    },
  )
})

describe("scopes", () => {
  it("a key reaches what it was made for, and nothing else", async () => {
    const { key } = await create({ name: "k", scopes: ["embeddings.create", "embeddings.create"] })
    const as = (await api.authenticate(key)) as Caller
    expect(as.scopes).toEqual(["embeddings.create"])
    expect((await api.ask("POST /v1/embeddings.create", { as })).json).toEqual({
      said: "embeddings.create",
    })
    expect(refusal(await api.ask("POST /v1/chat.completions", { as }))).toEqual([
      403,
      "permission_denied",
      null,
    ])
  })

  it("can be changed, at once", async () => {
    const { id, key } = await create({ name: "k" })
    expect((await patch(id, { scopes: ["chat.completions"] })).json.scopes).toEqual([
      "chat.completions",
    ])
    expect(await api.authenticate(key)).toMatchObject({ scopes: ["chat.completions"] })
    expect((await api.audit({ target: id })).at(-1)).toMatchObject({
      before: { scopes: ["*"] },
      after: { scopes: ["chat.completions"] },
    })
  })
})
