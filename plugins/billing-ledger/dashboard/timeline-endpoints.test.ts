import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { apiError, type Endpoint } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { openTestLedger, type Spent, type TestLedger } from "../testing/ledger.ts"
import { percentilesOf } from "./latency-rows.ts"
import { errorsEndpoint, latencyEndpoint } from "./timeline-endpoints.ts"

let test: TestDatabase
let ledger: TestLedger
let latency: Endpoint
let errors: Endpoint
let account: string
let turn = 0
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  latency = latencyEndpoint(ledger.started)
  errors = errorsEndpoint(ledger.started)
})
afterAll(() => test.close())
beforeEach(async () => {
  account = `acct_${++turn}`
  await ledger.grant(50_000_000_000n, account)
})

const hour = 3_600_000
const ask = (endpoint: Endpoint, query: Record<string, string> = {}, of = account) =>
  ledger.ask(endpoint, query, ledger.session(of))
const took = (totalMs: number, firstMs?: number, more: Spent = {}) =>
  ledger.spend({
    account,
    timing: `queue;dur=1${firstMs === undefined ? "" : `, first_token;dur=${firstMs}`}, total;dur=${totalMs}`,
    ...more,
  })
const near = (ms: number) => ({
  asymmetricMatch: (other: unknown) => Math.abs(Number(other) / ms - 1) <= 0.101,
  toString: () => `near ${ms}`,
})

it("percentiles of buckets are at most 10 % off", () => {
  const durations = fc.array(fc.double({ min: 0.1, max: 1e6, noNaN: true }), { minLength: 1 })
  fc.assert(
    fc.property(durations, (all) => {
      const rows = all.map((ms) => ({
        at: 0,
        bucket: Math.floor(Math.log(ms) / Math.log(1.2)),
        totals: 1,
        firsts: 0,
      }))
      const sorted = all.toSorted((a, b) => a - b)
      const rank = (share: number) => sorted[Math.ceil(share * all.length) - 1]!
      expect(percentilesOf(rows, "totals")).toEqual({
        median: near(rank(0.5)),
        p95: near(rank(0.95)),
      })
      expect(percentilesOf(rows, "firsts")).toBeUndefined()
    }),
  )
})

describe("GET /dashboard/latency", () => {
  it.each(["day", "hour"])(
    "says median and 95th percentile by %s, and of the range",
    async (step) => {
      const startMs = Math.ceil(ledger.clock.nowMs() / (24 * hour)) * 24 * hour
      ledger.clock.advance(startMs - ledger.clock.nowMs())
      for (let n = 1; n <= 20; n++) await took(n * 10, n)
      await took(5_000, 50, { status: 499 })
      await took(5_000, 50, { outcome: "voided", status: 500 })
      await took(5_000, 50, { model: "" })
      await took(5_000, 50, { counts: "money" })
      await took(5_000, 50, { mode: "test" })
      await ledger.spend({ account })
      const stepMs = step === "day" ? 24 * hour : hour
      ledger.clock.advance(stepMs)
      await took(700)
      await took(90, 8, { model: "other" })
      const at = startMs / 1000
      expect((await ask(latency, { step, from: String(at) })).json).toEqual({
        object: "list",
        data: [
          {
            at,
            calls: 20,
            duration_ms: { median: near(100), p95: near(190) },
            first_token_ms: { median: near(10), p95: near(19) },
          },
          {
            at: at + stepMs / 1000,
            calls: 2,
            duration_ms: { median: near(90), p95: near(700) },
            first_token_ms: { median: near(8), p95: near(8) },
          },
        ],
        all: {
          calls: 22,
          duration_ms: { median: near(110), p95: near(200) },
          first_token_ms: { median: near(10), p95: near(19) },
        },
      })
      expect((await ask(latency, { step, from: String(at), model: "other" })).json).toMatchObject({
        data: [{ calls: 1, duration_ms: { median: near(90) } }],
      })
      expect((await ask(latency, { step, from: String(at), mode: "test" })).json).toMatchObject({
        all: { calls: 1, duration_ms: { median: near(5_000) } },
      })
    },
  )

  it("has nothing where nothing was measured, and nobody else's", async () => {
    await took(10)
    const nothing = { calls: 0, duration_ms: null, first_token_ms: null }
    expect((await ask(latency, {}, `${account}_other`)).json).toEqual({
      object: "list",
      data: [],
      all: nothing,
    })
    expect((await ask(latency, { account }, `${account}_other`)).status).toBe(403)
  })

  it("reads three days by the hour at most, and ten years by the day", async () => {
    const from = (ms: number) => String(Math.floor((ledger.clock.nowMs() - ms) / 1000))
    expect((await ask(latency, { step: "hour", from: from(71 * hour) })).status).toBe(200)
    expect((await ask(latency, { step: "hour", from: from(73 * hour) })).json).toMatchObject({
      code: "invalid_request_error",
      param: "from",
    })
    expect((await ask(latency, { from: "0" })).status).toBe(400)
    expect((await ask(latency, { step: "week" })).status).toBe(400)
  })
})

describe("GET /dashboard/errors", () => {
  it("counts failed calls and refusals by code, those of limits, too", async () => {
    const startMs = Math.ceil(ledger.clock.nowMs() / (24 * hour)) * 24 * hour
    ledger.clock.advance(startMs - ledger.clock.nowMs())
    const from = String(startMs / 1000)
    const failure = { code: "backend_error", message: "" } as const
    await ledger.spend({ account })
    for (let n = 0; n < 3; n++)
      await ledger.spend({ account, outcome: "voided", status: 500, failure })
    await ledger.spend({ account, status: 499, model: "other" })
    const caller = { ...ledger.session(account), keyId: "key_1" }
    const error = apiError("context_length_exceeded")
    for (let n = 0; n < 30; n++)
      ledger.billing.noteRefused?.({
        caller,
        endpoint: "chat.completions",
        requestId: "",
        model: "m",
        error,
      })
    await expect(ledger.admit({ account: `${account}_poor` })).rejects.toThrow()
    ledger.clock.advance(25 * hour)
    await ledger.spend({ account, outcome: "voided", status: 500, failure })
    const at = startMs / 1000
    expect((await ask(errors, { from })).json).toEqual({
      object: "list",
      data: [
        { at, code: "backend_error", requests: 3 },
        { at, code: "client_closed", requests: 1 },
        { at, code: "context_length_exceeded", requests: 30 },
        { at: at + 86_400, code: "backend_error", requests: 1 },
      ],
    })
    expect((await ask(errors, { from, step: "hour", model: "m" })).json).toMatchObject({
      data: [
        { at, code: "backend_error" },
        { at, code: "context_length_exceeded" },
        { at: at + 25 * 3600, code: "backend_error" },
      ],
    })
    expect((await ask(errors, { from }, `${account}_poor`)).json).toMatchObject({
      data: [{ at, code: "insufficient_quota", requests: 1 }],
    })
    expect((await ask(errors, { from, mode: "test" })).json).toMatchObject({ data: [] })
  })
})
