import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Endpoint } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { openTestLedger, type TestLedger } from "../testing/ledger.ts"
import { ledgerEndpoint } from "./ledger-endpoint.ts"
import type { EntryReply } from "./to-entry.ts"

let test: TestDatabase
let ledger: TestLedger
let entries: Endpoint
let account: string
let turn = 0
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  entries = ledgerEndpoint(ledger.started)
})
afterAll(() => test.close())
beforeEach(() => {
  account = `acct_${++turn}`
})

interface List {
  readonly data: readonly EntryReply[]
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}
const list = async (query: Record<string, string> = {}, of = account) =>
  (await ledger.ask(entries, query, ledger.session(of))).json as List

describe("GET /dashboard/ledger", () => {
  it("waits for the settlements that are on their way", async () => {
    const drained = Effect.promise(() => ledger.grant(7_000_000n, account))
    const waiting = ledgerEndpoint(Effect.map(ledger.started, (deps) => ({ ...deps, drained })))
    const { json } = await ledger.ask(waiting, {}, ledger.session(account))
    expect((json as List).data).toMatchObject([{ amount_idr: 7 }])
  })

  it("shows what came and what went, with the running balance, the newest first", async () => {
    const at = Math.floor(ledger.clock.nowMs() / 1000)
    await ledger.grant(50_000_000_000n, account)
    const id = await ledger.spend({ account, requestId: "my label", usage: { inputTokens: 3 } })
    await ledger.grant(-500_000n, account, "typed twice")
    const { data, ...page } = await list()
    expect(data).toEqual(
      [
        {
          type: "adjustment",
          amount_idr: -0.5,
          balance_idr: 49_996.5,
          request_id: null,
          call_id: null,
          description: "typed twice",
        },
        {
          type: "charge",
          amount_idr: -3,
          balance_idr: 49_997,
          request_id: "my label",
          call_id: id,
          description: "chat.completions with m",
        },
        {
          type: "grant",
          amount_idr: 50_000,
          balance_idr: 50_000,
          request_id: null,
          call_id: null,
          description: "Free credit",
        },
      ].map((entry) => ({
        id: expect.stringMatching(/^entry_\d+$/),
        object: "ledger_entry",
        created_at: at,
        ...entry,
      })),
    )
    expect(page).toEqual({
      object: "list",
      has_more: false,
      first_id: data[0]!.id,
      last_id: data[2]!.id,
    })
    expect(await list({}, "nobody")).toEqual({
      object: "list",
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
  })

  it("pages, stable while rows are added; and filters by type and time", async () => {
    await ledger.grant(1_000_000_000_000n, account)
    const times: number[] = []
    for (let i = 0; i < 45; i++) {
      ledger.clock.advance(i % 3 === 0 ? 60_000 : 0)
      times.push(ledger.clock.nowMs())
      await ledger.spend({ account })
    }
    const whole = [...(await list({ limit: "100" })).data]
    expect(whole).toHaveLength(46)
    expect((await list()).data).toHaveLength(20)
    const seen: EntryReply[] = []
    for (let after: string | null = null; ; ) {
      const page: List = await list({ limit: "7", ...(after !== null && { after }) })
      seen.push(...page.data)
      after = page.last_id
      if (!page.has_more) break
      await ledger.spend({ account })
    }
    expect(seen).toEqual(whole)
    expect((await list({ type: "grant" })).data).toEqual([whole.at(-1)])
    expect((await list({ type: "adjustment" })).data).toEqual([])
    const [from, to] = [Math.floor(times[10]! / 1000), Math.floor(times[20]! / 1000)]
    const within = whole.filter((entry) => entry.created_at >= from && entry.created_at < to)
    expect(within.length).toBeGreaterThan(5)
    expect((await list({ from: String(from), to: String(to), type: "charge" })).data).toEqual(
      within,
    )
  })

  it.each([
    [{ limit: "0" }, "limit"],
    [{ limit: "101" }, "limit"],
    [{ limit: "" }, "limit"],
    [{ limit: "1e1" }, "limit"],
    [{ after: "entry_999999999999999999" }, "after"],
    [{ after: "entry_9999999999999999999999" }, "after"],
    [{ after: "1' OR '1'='1" }, "after"],
    [{ type: "refund" }, "type"],
    [{ type: "" }, "type"],
    [{ format: "pdf" }, "format"],
    [{ from: "2026-01-02", to: "2026-01-01" }, "from"],
    [{ to: "soon" }, "to"],
  ])("refuses %o", async (query, param) => {
    expect(
      await ledger.ask(entries, query as Record<string, string>, ledger.session(account)),
    ).toMatchObject({ status: 400, json: { code: "invalid_request_error", param } })
  })

  it("never shows another account's rows, but to an administrator who asks", async () => {
    await ledger.grant(5n, account)
    const [own] = (await list()).data
    expect(await ledger.ask(entries, { after: own!.id }, ledger.session("other"))).toMatchObject({
      status: 400,
      json: { param: "after" },
    })
    expect(await ledger.ask(entries, { account }, ledger.session("other"))).toMatchObject({
      status: 403,
      json: { code: "permission_denied", param: "account" },
    })
    expect(await ledger.ask(entries, { account }, ledger.session("other", "admin"))).toMatchObject({
      status: 200,
      json: { data: [own] },
    })
  })

  it("streams all of it as CSV, in pieces; a text that a spreadsheet would run is quoted", async () => {
    await ledger.grant(1_000_000_000_000n, account, '=HYPERLINK("http://x","a, b")')
    await Effect.runPromise(
      Effect.forEach(
        Array.from({ length: 2_100 }),
        () => Effect.promise(() => ledger.spend({ account })),
        { concurrency: 100, discard: true },
      ),
    )
    const { text, pieces, headers } = await ledger.csv(
      entries,
      { limit: "1" },
      ledger.session(account),
    )
    const lines = text.split("\r\n")
    expect(lines[0]).toBe(
      "id,created_at,type,amount_idr,balance_idr,request_id,call_id,description",
    )
    expect(lines[1]).toMatch(
      /^entry_\d+,2026-01-15T\d\d:\d\d:00\.000Z,charge,-4,991600,req_1,[0-9a-f-]{36},chat\.completions with m$/,
    )
    expect(lines.at(-2)).toMatch(
      /,grant,1000000,1000000,,,"'=HYPERLINK\(""http:\/\/x"",""a, b""\)"$/,
    )
    expect([lines.length, pieces, headers?.["content-disposition"]]).toEqual([
      2_103,
      4,
      'attachment; filename="ledger.csv"',
    ])
    expect(new Set(lines).size).toBe(2_103)
    const grants = await ledger.csv(entries, { type: "grant" }, ledger.session(account))
    expect(grants.text.split("\r\n")).toHaveLength(3)
  })
})
