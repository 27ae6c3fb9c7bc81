import { Effect } from "effect"
import { sql } from "kysely"
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
const run = (query: ReturnType<typeof sql>) =>
  Effect.runPromise(test.database.run(() => query.execute(test.database.queries())))
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

  it("shows how long the stages took, and why a call failed; filters by code", async () => {
    await ledger.spend({
      account,
      timing: "auth;dur=0.3, queue;dur=1.25, decode;dur=90, first_token;dur=12.34, total;dur=99.96",
    })
    ledger.clock.advance(1)
    const failed = { code: "backend_error", message: `broke\0${"x".repeat(500)}` } as const
    await ledger.spend({ account, outcome: "voided", status: 500, failure: failed })
    ledger.clock.advance(1)
    const busy = { code: "backend_busy", message: "try again" } as const
    await ledger.spend({ account, outcome: "refused", status: 429, failure: busy })
    ledger.clock.advance(1)
    await ledger.spend({ account, status: 499 })
    ledger.clock.advance(1)
    refuse("r")
    const { data } = await list()
    expect(data.slice(1)).toMatchObject([
      {
        status: "failed",
        http_status: 499,
        error: { code: "client_closed", message: expect.stringContaining("closed") },
        has_receipt: true,
      },
      { status: "refused", error: busy, has_receipt: true },
      {
        status: "failed",
        http_status: 500,
        stages_ms: null,
        first_token_ms: null,
        error: { code: "backend_error", message: `broke\ufffd${"x".repeat(294)}` },
      },
      {
        status: "succeeded",
        stages_ms: { auth: 0.3, queue: 1.25, decode: 90 },
        first_token_ms: 12.3,
        duration_ms: 100,
        error: null,
      },
    ])
    expect(await statuses({ code: "backend_error" })).toEqual(["failed"])
    expect(await statuses({ code: "client_closed" })).toEqual(["failed"])
    expect(await statuses({ code: "backend_busy", status: "refused" })).toEqual(["refused"])
    expect(await statuses({ code: "invalid_request_error" })).toEqual(["refused"])
    expect(await statuses({ code: "none" })).toEqual([])
  })

  it("says that a call expired, until it settles after all", async () => {
    const id = await ledger.admit({ account })
    await run(
      sql`SELECT ledger_settle(${JSON.stringify([{ id, outcome: "expired" }])}, ${new Date(ledger.clock.nowMs())})`,
    )
    expect((await list({ code: "expired" })).data).toMatchObject([
      { id, status: "failed", error: { code: "expired" } },
    ])
    await ledger.settle(id, { timing: "queue;dur=3, total;dur=9" })
    expect((await list()).data).toMatchObject([
      { id, status: "succeeded", duration_ms: 9, stages_ms: { queue: 3 }, error: null },
    ])
  })

  it("gives all of it as CSV, in pieces, with stages and codes", async () => {
    const timing = "auth;dur=0.3, queue;dur=1.25, total;dur=99.96"
    const failure = { code: "backend_timeout", message: 'too "slow", =1' } as const
    const id = await ledger.spend({ account, timing, failure, outcome: "voided", status: 504 })
    ledger.clock.advance(1)
    const other = await ledger.spend({ account, requestId: "=1+1" })
    await run(sql`
      INSERT INTO ledger_call SELECT (json_populate_record(c, json_build_object('id', gen_random_uuid(), 'ordinal', NULL, 'admitted_at', c.admitted_at + n * interval '1 ms'))).*
      FROM ledger_call c, generate_series(1, 1000) n WHERE c.id = ${other}`)
    const { text, headers, pieces } = await ledger.csv(calls, {}, ledger.session(account))
    expect(headers).toMatchObject({ "content-disposition": 'attachment; filename="calls.csv"' })
    expect(pieces).toBe(3)
    const lines = text.split("\r\n")
    expect(lines).toHaveLength(1_004)
    expect(lines[0]).toMatch(/^id,created_at,.*,stages_ms,batch_id,error_code,error_message$/)
    expect(lines[1]).toMatch(
      /,'=1\+1,chat\.completions,m,key_1,live,succeeded,200,2,1,4,-?\d+,,,,,$/,
    )
    expect(lines.at(-2)).toBe(
      `${id},${lines.at(-2)!.split(",")[1]},req_1,chat.completions,m,key_1,live,failed,504,0,0,0,100,,auth=0.3 queue=1.25,,backend_timeout,"too ""slow"", =1"`,
    )
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
