import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Caller, type Json, PortError } from "../../../core/index.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
let root: Caller
let ada: Caller
beforeAll(async () => {
  api = await openApiFixture()
  root = await api.makeAccount({ role: "admin" })
})
afterAll(() => api?.close())
beforeEach(async () => {
  ada = await api.makeAccount()
})

const grant = (body: Json, idempotencyKey?: string) =>
  api.ask(`POST /admin/accounts/${ada.tenant.account}/grants`, {
    as: root,
    body,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
const refusal = ({ status, json }: Awaited<ReturnType<typeof grant>>) => [
  status,
  json.code,
  json.param,
]
const balance = async () =>
  (await Effect.runPromise(api.fake.billing.balance(ada.tenant.account))).balanceMicros
const audit = () => api.audit({ target: ada.tenant.account })

it("adds and takes, with the reason on record", async () => {
  expect(await grant({ amount_idr: 50_000.000001, reason: " a bug " })).toMatchObject({
    status: 200,
    json: { object: "account", id: ada.tenant.account, balance_idr: 50_000.000001, held_idr: 0 },
  })
  expect(
    (await grant({ amount_idr: -0.000001, reason: "too much", currency: "IDR" })).json.balance_idr,
  ).toBe(50_000)
  expect(await balance()).toBe(50_000_000_000n)
  const entry = expect.stringMatching(/^grant_/)
  expect(await audit()).toMatchObject([
    {
      actor: root.tenant.account,
      action: "account.grant",
      before: { balance_idr: 0 },
      after: { balance_idr: 50_000.000001, amount_idr: 50_000.000001, reason: "a bug", entry },
    },
    {
      action: "account.grant",
      before: { balance_idr: 50_000.000001 },
      after: { balance_idr: 50_000, amount_idr: -0.000001, reason: "too much", entry },
    },
  ])
})

it("never goes below zero; the attempt is on record", async () => {
  await grant({ amount_idr: 10, reason: "r" })
  expect(refusal(await grant({ amount_idr: -10.000001, reason: "take it all" }))).toEqual([
    409,
    "conflict",
    "amount_idr",
  ])
  expect(await balance()).toBe(10_000_000n)
  expect((await audit()).at(-1)).toMatchObject({
    action: "account.grant.refuse",
    before: null,
    after: { amount_idr: -10.000001, reason: "take it all" },
  })
})

it("never goes above what can be counted", async () => {
  expect((await grant({ amount_idr: 1e12, reason: "rich" })).status).toBe(200)
  expect(refusal(await grant({ amount_idr: 0.000001, reason: "richer" }))).toEqual([
    409,
    "conflict",
    "amount_idr",
  ])
  expect(await balance()).toBe(10n ** 18n)
  expect((await audit()).map(({ action }) => action)).toEqual([
    "account.grant",
    "account.grant.refuse",
  ])
})

describe("bad input", () => {
  const reason = "r"
  it.each<[string, Json, string | null]>([
    ["no amount", { reason }, "amount_idr"],
    ["null", { amount_idr: null, reason }, "amount_idr"],
    ["a text", { amount_idr: "5", reason }, "amount_idr"],
    ["zero", { amount_idr: 0, reason }, "amount_idr"],
    ["minus zero", { amount_idr: -0, reason }, "amount_idr"],
    ["7 decimals", { amount_idr: 0.0000001, reason }, "amount_idr"],
    ["7 decimals of a larger one", { amount_idr: 1.0000001, reason }, "amount_idr"],
    ["too much", { amount_idr: 1_000_000_000_000.5, reason }, "amount_idr"],
    ["too much to take", { amount_idr: -1e15, reason }, "amount_idr"],
    ["infinity, as 1e999 is read", { amount_idr: Number.POSITIVE_INFINITY, reason }, "amount_idr"],
    ["a list", { amount_idr: [5], reason }, "amount_idr"],
    ["another currency", { amount_idr: 5, reason, currency: "USD" }, "currency"],
    ["a currency of another type", { amount_idr: 5, reason, currency: 360 }, "currency"],
    ["no reason", { amount_idr: 5 }, "reason"],
    ["an empty reason", { amount_idr: 5, reason: "" }, "reason"],
    ["a blank reason", { amount_idr: 5, reason: " \u00a0" }, "reason"],
    ["a long reason", { amount_idr: 5, reason: "x".repeat(501) }, "reason"],
    ["a reason in two lines", { amount_idr: 5, reason: "a\nb" }, "reason"],
    ["a reason of another type", { amount_idr: 5, reason: 5 }, "reason"],
    ["no body", undefined, null],
    ["a list as body", [], null],
  ])("refuses %s", async (_, body, param) => {
    expect(refusal(await grant(body))).toEqual([400, "invalid_request_error", param])
    expect([await balance(), await audit()]).toEqual([0n, []])
  })

  it("assigns nothing else", async () => {
    const { json } = await grant({
      amount_idr: 5,
      reason,
      balance_idr: 1e6,
      role: "admin",
      account_id: root.tenant.account,
      suspended: true,
    })
    expect(json).toMatchObject({
      id: ada.tenant.account,
      role: "user",
      suspended: false,
      balance_idr: 5,
    })
  })
})

it("an Idempotency-Key grants once", async () => {
  const key = `grant-${ada.tenant.account}`
  const [first, second] = [
    await grant({ amount_idr: 5, reason: "r" }, key),
    await grant({ amount_idr: 5, reason: "r" }, key),
  ]
  expect(second.json).toEqual(first.json)
  expect(await balance()).toBe(5_000_000n)
  expect(refusal(await grant({ amount_idr: 6, reason: "r" }, key))).toEqual([
    409,
    "conflict",
    "Idempotency-Key",
  ])
})

it("many at once all count, and each has its own before and after on record", async () => {
  await Promise.all(Array.from({ length: 30 }, () => grant({ amount_idr: 1, reason: "r" })))
  expect(await balance()).toBe(30_000_000n)
  expect(
    (await audit()).map(({ after }) => (after as { balance_idr: number }).balance_idr),
  ).toEqual(Array.from({ length: 30 }, (_, n) => n + 1))
})

it("a failure of the ledger leaves no record and tells nothing", async () => {
  const { billing } = api.fake
  const { adjust } = billing
  billing.adjust = () =>
    Effect.fail(new PortError({ port: "billing", message: "secret words of a database" }))
  const reply = await grant({ amount_idr: 5, reason: "r" })
  billing.adjust = adjust
  expect(refusal(reply)).toEqual([500, "internal_error", null])
  expect(reply.json.message).not.toContain("secret")
  expect(await audit()).toEqual([])
})
