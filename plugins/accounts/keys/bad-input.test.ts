import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Caller } from "../../../core/index.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"
import { keyRequests, refusal } from "../testing/key-requests.ts"

let api: ApiFixture
let ada: Caller
let keys: ReturnType<typeof keyRequests>
beforeAll(async () => {
  api = await openApiFixture({ testKeys: { models: ["svc-lyt"], rpd: 50 } })
})
afterAll(() => api?.close())
beforeEach(async () => {
  ada = await api.makeAccount()
  keys = keyRequests(api, ada)
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
    ["a right-to-left override", { name: "live\u202etset" }, "name"],
    ["an invisible character", { name: "pay\u200broll" }, "name"],
    ["joiners alone", { name: "\u200d\u200d" }, "name"],
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
    ["a body of nothing", { name: "k", limits: { body_mb: 0 } }, "limits.body_mb"],
    ["half a megabyte", { name: "k", limits: { body_mb: 0.5 } }, "limits.body_mb"],
    ["more than any endpoint", { name: "k", limits: { body_mb: 51 } }, "limits.body_mb"],
    ["a body as a text", { name: "k", limits: { body_mb: "5" } }, "limits.body_mb"],
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
    expect((await keys.list()).json.data).toEqual([])
    const { name = "k", ...rest } = body as { name?: unknown }
    const { id } = await keys.create()
    const shown = (await keys.list()).json.data[0]
    const changed = await keys.patch(id, { ...rest, ...(name !== null && { name }) })
    if (!["no name", "null as a name", "test as a text"].includes(_))
      expect(refusal(changed)).toEqual([400, "invalid_request_error", param])
    expect((await keys.list()).json.data[0]).toEqual(shown)
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
      mode: "test",
      object: "x",
    }
    const made = await keys.create({ name: "k", ...more })
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
    expect((await keys.patch(made.id, { ...more, test: true })).json).toEqual(shown)
    expect((await keyRequests(api, other).list("")).json.data).toEqual([])
  })

  it("keeps hostile names as they are", async () => {
    for (const name of [
      "'; DROP TABLE accounts_key; --",
      "<script>alert(1)</script>",
      "=cmd|' /C calc'!A0",
      "%00%0d%0a",
      "🔑".repeat(100),
    ])
      expect((await keys.create({ name })).name).toBe(name)
  })

  it.each(["key_unknown", "%00", "x".repeat(300), "' OR 1=1", "%F0%9F%94%91", "..%2F.."])(
    "404 for the id %s",
    async (id) => {
      for (const reply of [await keys.patch(id, { name: "x" }), await keys.revoke(id)])
        expect(refusal(reply)).toEqual([404, "not_found", null])
    },
  )

  it("another account's key looks like none; the attempt is on record", async () => {
    const eve = await api.makeAccount()
    const { id, key } = await keys.create()
    const before = (await keys.list()).json
    expect(refusal(await keyRequests(api, eve).patch(id, { name: "mine" }))).toEqual([
      404,
      "not_found",
      null,
    ])
    expect(refusal(await keyRequests(api, eve).revoke(id))).toEqual([404, "not_found", null])
    expect(refusal(await keyRequests(api, eve).list(`?after=${id}`))).toEqual([
      400,
      "invalid_request_error",
      "after",
    ])
    expect((await keys.list()).json).toEqual(before)
    expect(await api.authenticate(key)).toMatchObject({ tenant: ada.tenant })
    expect(await api.audit({ actor: eve.tenant.account })).toMatchObject([
      { action: "key.deny", target: id, after: { attempt: "update" } },
      { action: "key.deny", target: id, after: { attempt: "revoke" } },
    ])
  })

  it.each(["0", "101", "-1", "1.5", "abc", "", "1e1", " 5", "999999999999", "%00"])(
    "refuses limit=%s",
    async (limit) => {
      expect(refusal(await keys.list(`?limit=${limit}`))).toEqual([
        400,
        "invalid_request_error",
        "limit",
      ])
    },
  )
})
