import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Endpoint } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { makeLedger } from "../ledger.ts"
import { openTestLedger, type Spent, type TestLedger } from "../testing/ledger.ts"
import { revenueEndpoint } from "./revenue-endpoint.ts"

let test: TestDatabase
let ledger: TestLedger
let revenue: Endpoint
const lineOf = { parent: "batch_1", counts: "money", endpoint: "embeddings" } as const
/** By tokens: two rupiah for the two of the prompt, two for the one of the answer. */
const rupiahOfCall = 4

beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  revenue = revenueEndpoint(ledger.started)
  for (const account of ["acct_1", "acct_2", "acct_3"])
    await ledger.grant(10_000_000_000n, account, "Free credit", `free-credit:${account}`)
  await ledger.grant(500_000_000n, "acct_1", "top-up pay_1", "topup_1")
  await ledger.grant(20_000_000n, "acct_2", "sorry", "grant_1")
  await ledger.grant(-3_000_000n, "acct_2", "too much", "grant_2")
  const spendings: Spent[] = [
    {},
    { account: "acct_2", key: "key_2", model: "n" },
    { account: "acct_2", key: "key_2", ...lineOf },
    { mode: "test" },
    { outcome: "voided", status: 500 },
    { model: "", usage: {}, endpoint: "models.own" },
    { account: "acct_3", key: "key_3", outcome: "voided", status: 500, ...lineOf },
  ]
  // over two days, in steps that don't fit into hours
  for (let i = 0; i < 70; i++) {
    await ledger.spend(spendings[i % spendings.length])
    ledger.clock.advance(37 * 60_000 + 123)
  }
  await ledger.admit()
})
afterAll(() => test.close())

interface Sum {
  readonly name: string | null
  readonly requests: number
  readonly charged_idr: number
}
interface Revenue {
  readonly total: Omit<Sum, "name">
  readonly batch_idr: number
  readonly paying_accounts: number
  readonly credit: Record<string, { readonly entries: number; readonly idr: number }>
  readonly days: readonly Sum[]
  readonly models: readonly Sum[]
  readonly endpoints: readonly Sum[]
  readonly accounts: readonly Sum[]
}

const ask = async (query: Record<string, string> = {}): Promise<Revenue> => {
  const reply = await ledger.ask(revenue, query, ledger.session("acct_1", "admin"))
  expect(reply).toMatchObject({ status: 200, json: { object: "revenue" } })
  return reply.json as unknown as Revenue
}
const chargedBy = (sums: readonly Sum[]) => sums.map(({ name, charged_idr }) => [name, charged_idr])

describe("GET /admin/revenue", () => {
  it("is what live calls of all accounts were charged, by day, model, endpoint and account", async () => {
    const { total, models, endpoints, accounts, days, paying_accounts } = await ask()
    expect(total).toEqual({ requests: 60, charged_idr: 30 * rupiahOfCall })
    expect(chargedBy(models)).toEqual([
      ["m", 20 * rupiahOfCall],
      ["n", 10 * rupiahOfCall],
      [null, 0],
    ])
    expect(chargedBy(endpoints)).toEqual([
      ["chat.completions", 20 * rupiahOfCall],
      ["embeddings", 10 * rupiahOfCall],
      ["models.own", 0],
    ])
    expect(chargedBy(accounts)).toEqual([
      ["acct_2", 20 * rupiahOfCall],
      ["acct_1", 10 * rupiahOfCall],
      ["acct_3", 0],
    ])
    expect(paying_accounts).toBe(2)
    expect(days.map(({ name }) => name)).toEqual(days.map(({ name }) => name).toSorted())
    expect(days.length).toBeGreaterThan(1)
    for (const sums of [days, models, endpoints, accounts])
      expect(sums.reduce((sum, { charged_idr }) => sum + charged_idr, 0)).toBe(total.charged_idr)
  })

  it("equals the ledger's own report, and its charges", async () => {
    const own = makeLedger(test.database, ledger.clock, { leaseMs: 1, sweepMs: 1 })
    const range = { fromMs: 0, toMs: ledger.clock.nowMs() + 1 }
    const sums = await ask()
    for (const [group, shown] of [
      ["account", sums.accounts],
      ["day", sums.days],
      ["model", sums.models],
    ] as const) {
      const rows = await Effect.runPromise(own.report({ ...range, groupBy: [group] }))
      expect(
        rows.map(({ groups: [name], requests, costMicros }) => ({
          ...{ name, requests },
          charged_idr: Number(costMicros) / 1e6,
        })),
      ).toEqual(
        shown
          .map(({ name, requests, charged_idr }) => ({ name: name ?? "", requests, charged_idr }))
          .toSorted((a, b) => (a.name === "" ? 1 : b.name === "" ? -1 : a.name < b.name ? -1 : 1)),
      )
    }
    const { faults } = await Effect.runPromise(own.verify)
    expect(faults).toEqual([])
  })

  it("says what lines of batches paid, and what credit was given", async () => {
    const { batch_idr, credit } = await ask()
    expect(batch_idr).toBe(10 * rupiahOfCall)
    expect(credit).toEqual({
      free_credit: { entries: 3, idr: 30_000 },
      top_up: { entries: 1, idr: 500 },
      grant: { entries: 1, idr: 20 },
      correction: { entries: 1, idr: 3 },
    })
  })

  it("counts only what is in the range, also one that cuts an hour", async () => {
    const all = await ask()
    const [first] = all.days
    const day = await ask({ from: first!.name!, to: first!.name! })
    expect(day.days).toEqual([first])
    expect(day.total.charged_idr).toBe(first!.charged_idr)
    const cut = String(Math.floor(ledger.clock.nowMs() / 1000) - 45 * 60)
    const [before, after] = [await ask({ from: "1970-01-01", to: cut }), await ask({ from: cut })]
    expect(before.total.requests + after.total.requests).toBe(all.total.requests)
    expect(before.batch_idr + after.batch_idr).toBe(all.batch_idr)
    expect(after.credit).toMatchObject({ top_up: { entries: 0, idr: 0 } })
  })

  it("is empty where nothing was called", async () => {
    expect(await ask({ from: "1970-01-01", to: "1970-01-02" })).toMatchObject({
      ...{ total: { requests: 0, charged_idr: 0 }, batch_idr: 0, paying_accounts: 0 },
      ...{ days: [], models: [], endpoints: [], accounts: [] },
    })
  })

  it("shows the fifty accounts that paid the most; the CSV has all of them", async () => {
    for (let n = 0; n < 60; n++) {
      await ledger.grant(10_000_000_000n, `many_${n}`)
      await ledger.spend({ account: `many_${n}`, key: `many_${n}`, usage: { inputTokens: n + 1 } })
    }
    const { accounts, paying_accounts } = await ask()
    expect(accounts).toHaveLength(50)
    expect(paying_accounts).toBe(62)
    expect(chargedBy(accounts.slice(0, 3))).toEqual([
      ["acct_2", 20 * rupiahOfCall],
      ["many_59", 60],
      ["many_58", 59],
    ])
    const { text, headers, mediaType } = await ledger.csv(
      revenue,
      {},
      ledger.session("acct_1", "admin"),
    )
    expect(mediaType).toMatch(/^text\/csv/)
    expect(headers).toMatchObject({ "content-disposition": 'attachment; filename="revenue.csv"' })
    const lines = text.split("\r\n")
    expect(lines[0]).toBe("group,name,requests,charged_idr")
    expect(lines[1]).toMatch(/^total,,120,/)
    expect(lines.filter((line) => line.startsWith("account,"))).toHaveLength(63)
    expect(lines).toContain("account,many_59,1,60")
  })

  it("is for administrators", async () => {
    expect(await ledger.ask(revenue)).toMatchObject({
      status: 403,
      json: { code: "permission_denied" },
    })
  })

  it.each([
    [{ from: "yesterday" }, "from"],
    [{ from: "2026-01-16", to: "2026-01-15" }, "from"],
    [{ format: "xml" }, "format"],
  ])("refuses %o", async (query, param) => {
    expect(
      await ledger.ask(revenue, query as Record<string, string>, ledger.session("acct_1", "admin")),
    ).toMatchObject({ status: 400, json: { code: "invalid_request_error", param } })
  })
})
