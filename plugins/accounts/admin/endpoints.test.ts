import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Caller, Json } from "../../../core/index.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
let root: Caller
let ada: Caller
beforeAll(async () => {
  api = await openApiFixture()
})
afterAll(() => api?.close())
beforeEach(async () => {
  root = await api.makeAccount({ role: "admin" })
  ada = await api.makeAccount()
})

const idOf = (caller: Caller) => caller.tenant.account
const post = (id: string, verb: string, body: Json = undefined, as = root) =>
  api.ask(`POST /admin/accounts/${id}/${verb}`, { as, body })
const accounts = (query = "", as = root) => api.ask(`GET /admin/accounts${query}`, { as })
const refusal = ({ status, json }: Awaited<ReturnType<typeof accounts>>) => [
  status,
  json.code,
  json.param,
]
const auditOf = (caller: Caller) => api.audit({ target: idOf(caller) })
const keyOf = async (as: Caller) =>
  (await api.ask("POST /dashboard/keys", { as, body: { name: "k" } })).json.key as string

describe("the list of accounts", () => {
  it("shows accounts with their balances, newest first, in pages", async () => {
    api.clock.advance(1_000)
    const made = []
    for (let n = 0; n < 5; n++)
      made.push(await api.makeAccount({ email: `page${n}@paging.example`, verified: n > 0 }))
    await post(idOf(made[0]!), "grants", { amount_idr: 12.5, reason: "hello" })
    const ids: string[] = []
    for (let after = ""; ; ) {
      const { json } = await accounts(`?q=PAGING.example&limit=2${after}`)
      ids.push(...json.data.map(({ id }: { id: string }) => id))
      expect([json.first_id, json.last_id]).toEqual([json.data[0].id, json.data.at(-1).id])
      if (!json.has_more) break
      after = `&after=${json.last_id}`
    }
    // made in one millisecond: any order will do, as long as it is stable
    expect(ids.toSorted()).toEqual(made.map(idOf).toSorted())
    const { json } = await accounts(`?q=${idOf(made[0]!)}`)
    expect(json).toEqual({
      object: "list",
      data: [
        {
          ...{
            id: idOf(made[0]!),
            object: "account",
            email: "page0@paging.example",
            role: "user",
            email_verified: false,
            suspended: false,
            two_factor: false,
            low_balance_idr: null,
          },
          ...{ balance_idr: 12.5, held_idr: 0, created_at: Math.floor(api.clock.nowMs() / 1000) },
        },
      ],
      has_more: false,
      first_id: idOf(made[0]!),
      last_id: idOf(made[0]!),
    })
    api.clock.advance(1)
    const youngest = await api.makeAccount({ email: "youngest@paging.example" })
    expect((await accounts("?limit=1")).json.first_id).toBe(idOf(youngest))
  })

  it("is filtered by state and balance, in pages", async () => {
    const make = (name: string, more: { verified?: boolean; role?: "admin" } = {}) =>
      api.makeAccount({ email: `${name}@filter.example`, ...more })
    const [poor, rich, off] = [await make("poor"), await make("rich"), await make("off")]
    const fresh = await make("fresh", { verified: false })
    const boss = await make("boss", { role: "admin" })
    await post(idOf(off), "suspend")
    await post(idOf(rich), "grants", { amount_idr: 1000, reason: "r" })
    await post(idOf(poor), "grants", { amount_idr: 999.5, reason: "r" })
    const found = async (query: string) =>
      (await accounts(`?q=filter.example&${query}`)).json.data
        .map(({ id }: { id: string }) => id)
        .toSorted()
    const ids = (...callers: Caller[]) => callers.map(idOf).toSorted()
    expect(await found("state=active")).toEqual(ids(poor, rich, boss))
    expect(await found("state=unverified")).toEqual(ids(fresh))
    expect(await found("state=suspended")).toEqual(ids(off))
    expect(await found("state=admin")).toEqual(ids(boss))
    expect(await found("state=active&balance_below=1000")).toEqual(ids(poor, boss))
    expect(await found("balance_below=999.5")).toEqual(ids(off, fresh, boss))
    expect(await found("balance_below=")).toEqual(ids(poor, rich, off, fresh, boss))
    const first = (await accounts("?q=filter.example&balance_below=1000&limit=3")).json
    expect([first.data.length, first.has_more]).toEqual([3, true])
    const rest = (
      await accounts(`?q=filter.example&balance_below=1000&limit=3&after=${first.last_id}`)
    ).json
    expect([rest.data.length, rest.has_more]).toEqual([1, false])
  })

  it("shows an administrator the keys of an account, in pages, without the keys", async () => {
    const key = await keyOf(ada)
    await keyOf(ada)
    const keys = (id: string, query = "", as = root) =>
      api.ask(`GET /admin/accounts/${id}/keys${query}`, { as })
    const { status, json } = await keys(idOf(ada), "?limit=1")
    expect([status, json.data.length, json.has_more]).toEqual([200, 1, true])
    const next = await keys(idOf(ada), `?limit=1&after=${json.last_id}`)
    expect(next.json).toMatchObject({ has_more: false, data: [{ name: "k", revoked_at: null }] })
    expect(JSON.stringify([json, next.json])).not.toContain(key)
    expect((await keys(idOf(root))).json.data).toEqual([])
    for (const id of ["acct_unknown", "%00", "x".repeat(300)])
      expect(refusal(await keys(id))).toEqual([404, "not_found", null])
    expect(refusal(await keys(idOf(ada), "", ada))).toEqual([403, "permission_denied", null])
    expect(refusal(await keys(idOf(ada), "?after=nope"))).toEqual([
      400,
      "invalid_request_error",
      "after",
    ])
  })

  it("takes % and _ and \\ as they are", async () => {
    await api.makeAccount({ email: "a_b%c@wild.example" })
    await api.makeAccount({ email: "axbyc@wild.example" })
    const count = async (q: string) =>
      (await accounts(`?q=${encodeURIComponent(q)}`)).json.data.length
    expect(await Promise.all(["a_b", "b%c", "a%c", "\\", "' OR 1=1 --", "%25"].map(count))).toEqual(
      [1, 1, 0, 0, 0, 0],
    )
  })

  it("refuses what can't be looked for", async () => {
    expect(refusal(await accounts(`?q=${"x".repeat(201)}`))).toEqual([
      400,
      "invalid_request_error",
      "q",
    ])
    expect(refusal(await accounts("?q=%00"))).toEqual([400, "invalid_request_error", "q"])
    expect(refusal(await accounts("?state=gone"))).toEqual([400, "invalid_request_error", "state"])
    for (const below of ["x", "1e3", "1.1234567", "9".repeat(14)])
      expect(refusal(await accounts(`?balance_below=${below}`))).toEqual([
        400,
        "invalid_request_error",
        "balance_below",
      ])
    for (const after of ["nope", "%00", ""])
      expect(refusal(await accounts(`?after=${after}`))).toEqual([
        400,
        "invalid_request_error",
        "after",
      ])
    expect(refusal(await accounts("?limit=0"))).toEqual([400, "invalid_request_error", "limit"])
  })
})

describe("an account", () => {
  it("is suspended and taken back, at once for its keys; again changes nothing", async () => {
    const key = await keyOf(ada)
    expect(await api.authenticate(key)).toMatchObject({ tenant: ada.tenant })
    for (let time = 0; time < 2; time++) {
      const { status, json } = await post(idOf(ada), "suspend")
      expect([status, json]).toEqual([
        200,
        expect.objectContaining({ id: idOf(ada), object: "account", suspended: true }),
      ])
      expect(await api.authenticate(key)).toBe("account_suspended")
    }
    for (let time = 0; time < 2; time++)
      expect((await post(idOf(ada), "unsuspend")).json).toMatchObject({ suspended: false })
    expect(await api.authenticate(key)).toMatchObject({ tenant: ada.tenant })
    const by = { actor: idOf(root), target: idOf(ada) }
    expect(await auditOf(ada)).toEqual([
      expect.objectContaining({
        ...by,
        action: "account.suspend",
        before: { suspended: false },
        after: { suspended: true },
      }),
      expect.objectContaining({
        ...by,
        action: "account.unsuspend",
        before: { suspended: true },
        after: { suspended: false },
      }),
    ])
  })

  it("is verified", async () => {
    const eve = await api.makeAccount({ verified: false })
    const key = await keyOf(eve)
    expect(await api.authenticate(key)).toBe("email_not_verified")
    for (let time = 0; time < 2; time++)
      expect((await post(idOf(eve), "verify")).json).toMatchObject({ email_verified: true })
    expect(await api.authenticate(key)).toMatchObject({ tenant: eve.tenant })
    expect(await auditOf(eve)).toMatchObject([
      {
        action: "account.verify",
        before: { email_verified: false },
        after: { email_verified: true },
      },
    ])
  })

  it("becomes an admin's, and a user's again", async () => {
    const key = await keyOf(ada)
    expect(await api.authenticate(key)).toMatchObject({ role: "user" })
    expect((await post(idOf(ada), "role", { role: "admin" })).json).toMatchObject({ role: "admin" })
    expect(await api.authenticate(key)).toMatchObject({ role: "admin" })
    expect((await post(idOf(ada), "role", { role: "admin" })).status).toBe(200)
    expect((await post(idOf(ada), "role", { role: "user" })).json).toMatchObject({ role: "user" })
    expect((await auditOf(ada)).map(({ before, after }) => [before, after])).toEqual([
      [{ role: "user" }, { role: "admin" }],
      [{ role: "admin" }, { role: "user" }],
    ])
  })

  it.each([{}, { role: null }, { role: "root" }, { role: 1 }, { role: ["admin"] }])(
    "refuses the role %j",
    async (body) => {
      expect(refusal(await post(idOf(ada), "role", body))).toEqual([
        400,
        "invalid_request_error",
        "role",
      ])
      expect(await auditOf(ada)).toEqual([])
    },
  )

  it("nobody suspends the own one, or changes the own role", async () => {
    expect(refusal(await post(idOf(root), "suspend"))).toEqual([409, "conflict", null])
    expect(refusal(await post(idOf(root), "role", { role: "user" }))).toEqual([
      409,
      "conflict",
      null,
    ])
    expect((await accounts(`?q=${idOf(root)}`)).json.data[0]).toMatchObject({
      role: "admin",
      suspended: false,
    })
  })

  it.each(["suspend", "unsuspend", "verify", "end-two-factor", "role", "grants"])(
    "404 for %s of an unknown one",
    async (verb) => {
      const body = { role: "user", amount_idr: 1, reason: "r" }
      for (const id of ["acct_unknown", "%00", "x".repeat(300), "%F0%9F%94%91"])
        expect(refusal(await post(id, verb, body))).toEqual([404, "not_found", null])
    },
  )
})

describe("who may", () => {
  it("users may nothing of it", async () => {
    for (const verb of ["suspend", "unsuspend", "verify", "end-two-factor", "role", "grants"])
      expect(
        refusal(await post(idOf(root), verb, { role: "admin", amount_idr: 1, reason: "r" }, ada)),
      ).toEqual([403, "permission_denied", null])
    expect(refusal(await accounts("", ada))).toEqual([403, "permission_denied", null])
    expect(refusal(await api.ask("GET /admin/audit", { as: ada }))).toEqual([
      403,
      "permission_denied",
      null,
    ])
    expect(await auditOf(root)).toEqual([])
  })

  it("the row decides, not what a session remembers", async () => {
    const other = await api.makeAccount({ role: "admin" })
    await post(idOf(other), "role", { role: "user" })
    expect(refusal(await post(idOf(ada), "grants", { amount_idr: 5, reason: "r" }, other))).toEqual(
      [403, "permission_denied", null],
    )
    await post(idOf(other), "role", { role: "admin" })
    await post(idOf(other), "suspend")
    expect(refusal(await post(idOf(ada), "suspend", undefined, other))).toEqual([
      403,
      "account_suspended",
      null,
    ])
    expect(await auditOf(ada)).toEqual([])
  })

  it("two admins who suspend each other at once don't both succeed", async () => {
    for (let time = 0; time < 5; time++) {
      const [a, b] = [
        await api.makeAccount({ role: "admin" }),
        await api.makeAccount({ role: "admin" }),
      ]
      const replies = await Promise.all([
        post(idOf(a), "suspend", undefined, b),
        post(idOf(b), "suspend", undefined, a),
      ])
      expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 403])
    }
  })
})
