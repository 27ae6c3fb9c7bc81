import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { apiError, type Endpoint } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { runs } from "../../../testing/property.ts"
import { openTestLedger, type Spent, type TestLedger } from "../testing/ledger.ts"
import { usageEndpoint } from "./usage-endpoint.ts"

let test: TestDatabase
let ledger: TestLedger
let usage: Endpoint
const startMs = Date.UTC(2026, 0, 15, 12)
const secondsAt = (ms: number) => String(Math.floor(ms / 1000))
/** Every call, with the time of its admission. */
const history: { readonly atMs: number; readonly spent: Spent }[] = []

beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  usage = usageEndpoint(ledger.started)
  await ledger.grant(1_000_000_000_000n)
  await ledger.grant(1_000_000_000_000n, "acct_2")
  const spendings: Spent[] = [
    {},
    { key: "key_2" },
    { model: "n" },
    { status: 400, outcome: "voided" },
    { endpoint: "embeddings", usage: { inputTokens: 5 } },
    { status: 499 },
    { mode: "test" },
    { model: "", usage: {}, endpoint: "models.own" },
    { outcome: "refused", status: 429 },
    { account: "acct_2" },
    { key: "" },
    { status: 404 },
  ]
  // over three days, in steps that don't fit into hours
  for (let i = 0; i < 120; i++) {
    const spent = spendings[i % spendings.length]!
    await ledger.spend(spent)
    history.push({ atMs: ledger.clock.nowMs(), spent })
    ledger.clock.advance(37 * 60_000 + 123)
  }
  await ledger.admit({ counts: "rpm" })
  await ledger.admit()
})
afterAll(() => test.close())

const data = async (query: Record<string, string>) => {
  const answer = await ledger.ask(usage, query)
  expect(answer.json).toMatchObject({
    object: "list",
    has_more: false,
    first_id: null,
    last_id: null,
  })
  return (answer.json as { data: Record<string, unknown>[] }).data
}

const sumsOf = (calls: typeof history) => {
  const counted = calls.filter(({ spent }) => spent.outcome !== "refused")
  const paid = counted.filter(({ spent }) => spent.outcome !== "voided").map(({ spent }) => spent)
  const tokens = (kind: "inputTokens" | "outputTokens", usual: number) =>
    paid.reduce((sum, { usage: used }) => sum + (used ? (used[kind] ?? 0) : usual), 0)
  const [input_tokens, output_tokens] = [tokens("inputTokens", 2), tokens("outputTokens", 1)]
  const cost_idr = paid
    .filter(({ mode }) => mode !== "test")
    .reduce(
      (sum, { usage: used }) =>
        sum + (used ? (used.inputTokens ?? 0) + 2 * (used.outputTokens ?? 0) : 4),
      0,
    )
  const isError = ({ status = 200, outcome }: Spent) =>
    outcome === "voided" || (status >= 400 && status !== 499)
  return {
    requests: counted.length,
    errors: counted.filter(({ spent }) => isError(spent)).length,
    input_tokens,
    output_tokens,
    cost_idr,
  }
}
const mine = (mode = "live", account = "acct_1") =>
  history.filter(
    ({ spent }) => (spent.mode ?? "live") === mode && (spent.account ?? "acct_1") === account,
  )

describe("GET /dashboard/usage", () => {
  it("is one row for all of the last 30 days; open calls, dry runs and refused calls are not in it", async () => {
    expect(await data({})).toEqual([sumsOf(mine())])
    expect(await data({ mode: "test" })).toEqual([sumsOf(mine("test"))])
    expect(await ledger.ask(usage, {}, ledger.session("nobody"))).toMatchObject({
      json: { data: [{ requests: 0, errors: 0, input_tokens: 0, output_tokens: 0, cost_idr: 0 }] },
    })
  })

  it("is exact for any time, also one that cuts an hour", async () => {
    const moment = fc.integer({
      min: Math.floor(startMs / 1000) - 7200,
      max: Math.floor(startMs / 1000) + 4 * 86_400,
    })
    await fc.assert(
      fc.asyncProperty(
        moment,
        fc.oneof(fc.nat(7200), fc.nat(3 * 86_400), fc.constantFrom(3600, 7200)),
        fc.boolean(),
        async (begin, length, onHour) => {
          const from = onHour ? begin - (begin % 3600) : begin
          const [fromMs, toMs] = [from * 1000, (from + length) * 1000]
          const within = mine().filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
          expect(await data({ from: String(from), to: String(from + length) })).toEqual([
            sumsOf(within),
          ])
        },
      ),
      { numRuns: runs(150) },
    )
  })

  it("is grouped by what was asked for, sorted by it, in its order", async () => {
    const days = await data({ group_by: "day" })
    const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
    expect(days).toEqual(
      [...new Set(mine().map(({ atMs }) => dayOf(atMs)))].map((day) => ({
        day,
        ...sumsOf(mine().filter(({ atMs }) => dayOf(atMs) === day)),
      })),
    )
    const rows = await data({ group_by: "model,key,endpoint,day" })
    expect(Object.keys(rows[0]!).slice(0, 4)).toEqual(["model", "key", "endpoint", "day"])
    const names = rows.map(({ model, key, endpoint, day }) =>
      [model ?? "~", key ?? "~", endpoint, day].join("|"),
    )
    expect(names).toEqual(names.toSorted())
    expect(rows.reduce((sum, row) => sum + (row.requests as number), 0)).toBe(
      sumsOf(mine()).requests,
    )
    expect(await data({ group_by: "model" })).toMatchObject([
      { model: "m" },
      { model: "n" },
      { model: null, requests: 10, input_tokens: 0 },
    ])
    expect(await data({ group_by: "key" })).toMatchObject([
      { key: "key_1" },
      { key: "key_2" },
      { key: null, requests: 10 },
    ])
  })

  it("takes dates, of which the last is in it to its end", async () => {
    const day = mine().filter(({ atMs }) => new Date(atMs).toISOString().startsWith("2026-01-16"))
    expect(await data({ from: "2026-01-16", to: "2026-01-16" })).toEqual([sumsOf(day)])
    expect(await data({ from: "1970-01-01", to: "9999-12-31" })).toEqual([sumsOf(mine())])
    expect(await data({ to: "2026-01-15" })).toEqual([
      sumsOf(mine().filter(({ atMs }) => atMs < Date.UTC(2026, 0, 16))),
    ])
    expect(await data({ from: secondsAt(ledger.clock.nowMs()) })).toEqual([sumsOf([])])
  })

  it.each([
    [{ from: "yesterday" }, "from"],
    [{ from: "" }, "from"],
    [{ from: "-1" }, "from"],
    [{ from: "1.5" }, "from"],
    [{ from: "1e3" }, "from"],
    [{ from: "2026-02-30" }, "from"],
    [{ from: "1969-12-31" }, "from"],
    [{ from: "2026-1-1" }, "from"],
    [{ to: "253402300800" }, "to"],
    [{ to: "10000-01-01" }, "to"],
    [{ to: "2026-01-15T00:00:00Z" }, "to"],
    [{ to: "' OR 1=1" }, "to"],
    [{ from: "2026-01-16", to: "2026-01-15" }, "from"],
    [{ from: "100", to: "99" }, "from"],
    [{ from: "2099-01-01" }, "from"],
    [{ group_by: "day,day" }, "group_by"],
    [{ group_by: "account" }, "group_by"],
    [{ group_by: "day," }, "group_by"],
    [{ group_by: "__proto__" }, "group_by"],
    [{ mode: "both" }, "mode"],
    [{ format: "xml" }, "format"],
    [{ account: "" }, "account"],
  ])("refuses %o", async (query, param) => {
    const admin = ledger.session("acct_1", "admin")
    expect(await ledger.ask(usage, query as Record<string, string>, admin)).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param },
    })
  })

  it("of another account is for administrators", async () => {
    expect(await ledger.ask(usage, { account: "acct_2" })).toMatchObject({
      status: 403,
      json: { code: "permission_denied" },
    })
    expect(await ledger.ask(usage, { account: "acct_1" })).toMatchObject({ status: 200 })
    expect(
      await ledger.ask(usage, { account: "acct_2" }, ledger.session("acct_1", "admin")),
    ).toMatchObject({ json: { data: [sumsOf(mine("live", "acct_2"))] } })
  })

  it("counts what was refused before it was a call as an error, by its hour", async () => {
    const caller = { ...ledger.session("acct_7"), keyId: "key_7" }
    const note = (endpoint: string, model?: string) =>
      ledger.billing.noteRefused?.({
        ...{ caller, endpoint, model, requestId: "req" },
        error: apiError("model_not_found"),
      })
    for (let n = 0; n < 1_000; n++) note("chat.completions", "m")
    note("embeddings")
    const asAdmin = async (query: Record<string, string>) =>
      (
        (
          await ledger.ask(
            usage,
            { account: "acct_7", ...query },
            ledger.session("acct_1", "admin"),
          )
        ).json as { data: unknown[] }
      ).data
    const none = { input_tokens: 0, output_tokens: 0, cost_idr: 0 }
    expect(await asAdmin({})).toEqual([{ requests: 1_001, errors: 1_001, ...none }])
    note("chat.completions", "m")
    expect(await asAdmin({ group_by: "key,model,endpoint" })).toEqual([
      {
        key: "key_7",
        model: "m",
        endpoint: "chat.completions",
        requests: 1_001,
        errors: 1_001,
        ...none,
      },
      { key: "key_7", model: null, endpoint: "embeddings", requests: 1, errors: 1, ...none },
    ])
    const from = secondsAt(ledger.clock.nowMs() - 60_000)
    expect(await asAdmin({ from })).toMatchObject([{ errors: 1_002 }])
    expect(await asAdmin({ to: "2026-01-16" })).toMatchObject([{ errors: 0 }])
  })

  it("comes as CSV", async () => {
    const { text, mediaType, headers } = await ledger.csv(usage, { group_by: "model" })
    const { requests, errors, input_tokens, output_tokens, cost_idr } = (
      await data({ group_by: "model" })
    )[0] as Record<string, number>
    expect(mediaType).toMatch(/^text\/csv/)
    expect(headers).toMatchObject({ "content-disposition": 'attachment; filename="usage.csv"' })
    const lines = text.split("\r\n")
    expect(lines.slice(0, 2)).toEqual([
      "model,requests,errors,input_tokens,output_tokens,cost_idr",
      ["m", requests, errors, input_tokens, output_tokens, cost_idr].join(","),
    ])
    expect(lines).toHaveLength(5)
  })
})
