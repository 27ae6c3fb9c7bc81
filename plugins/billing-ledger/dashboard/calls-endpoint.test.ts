import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { apiError, type Endpoint } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { makeRefusedCalls } from "../refused-calls.ts"
import { openTestLedger, type TestLedger } from "../testing/ledger.ts"
import { callsEndpoint } from "./calls-endpoint.ts"

let test: TestDatabase
let ledger: TestLedger
let calls: Endpoint
let account: string
let turn = 0
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  calls = callsEndpoint(ledger.started)
})
afterAll(() => test.close())
beforeEach(async () => {
  account = `acct_${++turn}`
  await ledger.grant(50_000_000_000n, account)
})

interface List {
  readonly data: readonly { readonly id: string; readonly status: string }[]
  readonly has_more: boolean
  readonly last_id: string | null
}
const list = async (query: Record<string, string> = {}, of = account) =>
  (await ledger.ask(calls, query, ledger.session(of))).json as List
const refuse = (requestId: string, of = account) =>
  ledger.billing.noteRefused?.({
    caller: { ...ledger.session(of), keyId: "key_1" },
    ...{ endpoint: "chat.completions", model: "m", requestId },
    error: apiError("invalid_request_error", "messages: is \ud800 missing\0"),
  })
const statuses = async (query: Record<string, string>) =>
  (await list(query)).data.map(({ status }) => status)

describe("GET /dashboard/calls", () => {
  it("shows what ran, failed, runs and was refused, the newest first", async () => {
    const began = Math.floor(ledger.clock.nowMs() / 1000)
    const id = await ledger.admit({ account, requestId: "first" })
    ledger.clock.advance(250)
    await ledger.settle(id)
    await ledger.spend({ account, outcome: "voided", status: 502, model: "other" })
    ledger.clock.advance(1)
    refuse("refused")
    ledger.clock.advance(1)
    await ledger.admit({ account, key: "" })
    const { data } = await list()
    expect(data).toMatchObject([
      { status: "running", key_id: null, duration_ms: null, has_receipt: false },
      {
        id: expect.stringMatching(/^refused_\d+$/),
        status: "refused",
        request_id: "refused",
        http_status: 400,
        cost_idr: 0,
        has_receipt: false,
        error: { code: "invalid_request_error", message: "messages: is \ufffd missing\ufffd" },
      },
      { status: "failed", http_status: 502, model: "other", cost_idr: 0, has_receipt: true },
      {
        id,
        object: "call",
        created_at: began,
        status: "succeeded",
        request_id: "first",
        endpoint: "chat.completions",
        model: "m",
        key_id: "key_1",
        mode: "live",
        http_status: 200,
        input_tokens: 2,
        output_tokens: 1,
        duration_ms: 250,
        batch_id: null,
        has_receipt: true,
        error: null,
      },
    ])
    expect(await statuses({ status: "refused" })).toEqual(["refused"])
    expect(await statuses({ status: "failed" })).toEqual(["failed"])
    expect(await statuses({ status: "succeeded", key: "key_1" })).toEqual(["succeeded"])
    expect(await statuses({ model: "other" })).toEqual(["failed"])
    expect(await statuses({ from: String(began + 86_400) })).toEqual([])
  })

  it("shows calls without a model only where they failed, or when they are asked for", async () => {
    await ledger.spend({ account, model: "" })
    ledger.clock.advance(1)
    await ledger.spend({ account, model: "", status: 404 })
    expect(await statuses({})).toEqual(["failed"])
    expect(await statuses({ free: "shown" })).toEqual(["failed", "succeeded"])
  })

  it("shows calls that the balance refused, with the reason", async () => {
    const poor = `${account}_poor`
    await expect(ledger.admit({ account: poor })).rejects.toThrow()
    expect((await list({}, poor)).data).toMatchObject([
      { status: "refused", http_status: 402, error: { code: "insufficient_quota" } },
    ])
  })

  it("names a batch where there is one, and no file that was ingested", async () => {
    for (const parent of ["file-1", "batch-1"]) {
      await ledger.admit({ account, counts: "money", parent })
      ledger.clock.advance(1)
    }
    expect((await list()).data).toMatchObject([{ batch_id: "batch-1" }, { batch_id: null }])
  })

  it("pages without a gap, also where many have one time", async () => {
    for (let n = 0; n < 7; n++) {
      await ledger.spend({ account })
      refuse(`r${n}`)
      if (n % 3 === 0) ledger.clock.advance(1)
    }
    const whole = (await list()).data.map(({ id }) => id)
    expect(whole).toHaveLength(14)
    const paged: string[] = []
    let after: string | null = null
    do {
      const page: List = await list({ limit: "3", ...(after !== null && { after }) })
      paged.push(...page.data.map(({ id }) => id))
      after = page.has_more ? page.last_id : null
    } while (after !== null)
    expect(paged).toEqual(whole)
  })

  it("shows nobody else's, and refuses what it can't read", async () => {
    const id = await ledger.spend({ account })
    const other = ledger.session(`${account}_other`)
    expect((await ledger.ask(calls, {}, other)).json).toMatchObject({ data: [] })
    expect((await ledger.ask(calls, { after: id }, other)).status).toBe(400)
    expect((await ledger.ask(calls, { account }, other)).status).toBe(403)
    const admin = ledger.session(`${account}_other`, "admin")
    expect((await ledger.ask(calls, { account }, admin)).json).toMatchObject({ data: [{ id }] })
    for (const query of [
      { status: "good" },
      { after: "refused_0" },
      { model: "x".repeat(201) },
      { model: "\0" },
      { key: "a\0" },
    ])
      expect((await ledger.ask(calls, query as never, ledger.session(account))).status).toBe(400)
  })
})

it("keeps 20 refused requests of an account in ten seconds, whoever looks, for 30 days", async () => {
  ledger.clock.advance(10_000)
  for (let n = 0; n < 50; n++) refuse(`r${n}`)
  expect((await list({ limit: "100" })).data).toHaveLength(20)
  ledger.clock.advance(9_999)
  refuse("one more")
  expect((await list({ limit: "100" })).data).toHaveLength(20)
  ledger.clock.advance(1)
  refuse("one more")
  expect((await list({ limit: "100" })).data).toHaveLength(21)
  const { sweep } = makeRefusedCalls(test.database, ledger.clock)
  ledger.clock.advance(30 * 86_400_000 + 1)
  expect(await Effect.runPromise(sweep)).toBeGreaterThanOrEqual(21)
  expect((await list()).data).toEqual([])
})
