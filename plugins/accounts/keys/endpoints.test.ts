import { inspect } from "node:util"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Caller, isApiError } from "../../../core/index.ts"
import { sha256Of } from "../api-key.ts"
import { makeIdentity } from "../identity.ts"
import { makeKeyRows } from "../key-rows.ts"
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

/** Another server of the deployment, with its own connections and its own cache. */
const elsewhereOf = async ({ clock, openAgain }: ApiFixture) => {
  const identity = makeIdentity(makeKeyRows(await openAgain()), { note: () => {} }, clock)
  return (key: string) =>
    Effect.runPromise(
      identity
        .authenticate(key)
        .pipe(Effect.catch((error) => Effect.succeed(isApiError(error) ? error.code : error))),
    )
}

describe("a key", () => {
  it("has exactly the contract's form, and shows itself once", async () => {
    const made = await keys.create({ name: " laptop " })
    const { key, ...shown } = made
    expect(key).toMatch(/^svc_live_[A-Za-z0-9]{32}$/)
    expect(shown).toEqual({
      id: expect.stringMatching(/^key_/),
      object: "api_key",
      name: "laptop",
      prefix: key.slice(0, 12),
      test: false,
      scopes: ["*"],
      limits: { rpm: 60, rpd: 10_000, concurrency: 10, monthly_cap_idr: 1_000_000, body_mb: 50 },
      spent_this_month_idr: 0,
      created_at: Math.floor(api.clock.nowMs() / 1000),
      last_used_at: null,
      revoked_at: null,
      expires_at: null,
      models: null,
    })
    expect((await keys.list()).json).toEqual({
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
    const made = await keys.create({
      name: "t",
      test: true,
      limits: { rpm: 5, monthly_cap_idr: 0.5, body_mb: 2, rpd: null, colour: "red" },
      scopes: null,
      unknown: 1,
    })
    expect(made).toMatchObject({
      test: true,
      limits: { rpm: 5, rpd: 10_000, concurrency: 10, monthly_cap_idr: 0.5, body_mb: 2 },
      scopes: ["*"],
    })
    expect(await api.authenticate(made.key)).toMatchObject({
      tenant: { mode: "test" },
      limits: { rpm: 5, rpd: 50, monthlyCapMicros: 500_000n, bodyMb: 2 },
      models: ["svc-lyt"],
    })
    const live = await keys.create()
    expect(await api.authenticate(live.key)).not.toHaveProperty("models")
  })

  it("changes in parts, on record with what changed only", async () => {
    const { id } = await keys.create({ name: "a", limits: { rpm: 5 } })
    expect((await keys.patch(id, {})).json).toMatchObject({ name: "a" })
    expect((await keys.patch(id, { name: null, limits: null, scopes: null })).json).toMatchObject({
      name: "a",
      limits: { rpm: 5 },
    })
    expect((await keys.patch(id, { limits: { rpm: 5, rpd: null } })).status).toBe(200)
    const limits = { rpd: 7, monthly_cap_idr: 0, body_mb: 8 }
    const { json } = await keys.patch(id, { name: "b", limits })
    expect(json).toMatchObject({
      name: "b",
      limits: { rpm: 5, concurrency: 10, ...limits },
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
        before: { name: "a", limits: { rpd: 10_000, monthly_cap_idr: 1_000_000, body_mb: 50 } },
        after: { name: "b", limits },
      },
    ])
    expect((await api.audit({ target: id }))[1]).toHaveProperty("after", {
      name: "b",
      limits,
    })
  })

  it("takes effect in this process at once, and elsewhere within 5 s", async () => {
    const { id, key } = await keys.create()
    const elsewhere = await elsewhereOf(api)
    for (const look of [api.authenticate, elsewhere])
      expect(await look(key)).toMatchObject({ limits: { rpm: 60 } })
    await keys.patch(id, { limits: { rpm: 2 } })
    expect(await api.authenticate(key)).toMatchObject({ limits: { rpm: 2 } })
    expect(await elsewhere(key)).toMatchObject({ limits: { rpm: 60 } })
    api.clock.advance(3_000)
    expect(await elsewhere(key)).toMatchObject({ limits: { rpm: 2 } })
    await keys.revoke(id)
    expect(await api.authenticate(key)).toBe("authentication_error")
    api.clock.advance(3_000)
    expect(await elsewhere(key)).toBe("authentication_error")
  })

  it("is revoked once; then nothing of it changes", async () => {
    const { id, name } = await keys.create()
    const { status, json } = await keys.revoke(id)
    expect([status, json]).toEqual([
      200,
      expect.objectContaining({ id, name, revoked_at: Math.floor(api.clock.nowMs() / 1000) }),
    ])
    api.clock.advance(60_000)
    expect((await keys.revoke(id)).json).toEqual(json)
    expect(refusal(await keys.patch(id, { name: "x" }))).toEqual([409, "conflict", null])
    expect((await keys.list()).json.data).toEqual([json])
    expect((await api.audit({ target: id })).map(({ action }) => action)).toEqual([
      "key.create",
      "key.revoke",
    ])
  })

  it("shows what it spent this month", async () => {
    const { id } = await keys.create()
    const { billing } = api.fake
    const spent = billing.spentThisMonth
    billing.spentThisMonth = () => Effect.succeed(new Map([[id, 1_500_001n]]))
    expect((await keys.list()).json.data[0].spent_this_month_idr).toBe(1.500001)
    billing.spentThisMonth = spent
  })
})

describe("scopes", () => {
  it("a key reaches what it was made for, and nothing else", async () => {
    const { key } = await keys.create({
      name: "k",
      scopes: ["embeddings.create", "embeddings.create"],
    })
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
    const { id, key } = await keys.create({ name: "k" })
    expect((await keys.patch(id, { scopes: ["chat.completions"] })).json.scopes).toEqual([
      "chat.completions",
    ])
    expect(await api.authenticate(key)).toMatchObject({ scopes: ["chat.completions"] })
    expect((await api.audit({ target: id })).at(-1)).toMatchObject({
      before: { scopes: ["*"] },
      after: { scopes: ["chat.completions"] },
    })
  })
})
