import { join } from "node:path"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ReportRow } from "../../core/ports/ledger.ts"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"
import { proofText, reportCsv, reportJson, reportTable } from "./ledger-text.ts"
import { readReportQuery } from "./report-query.ts"

const config = join(import.meta.dirname, "../../config/test.yaml")
const nowMs = Date.UTC(2026, 0, 15, 12)

describe("what a report is asked for", () => {
  const read = (words: Partial<Parameters<typeof readReportQuery>[0]>) =>
    readReportQuery({ by: "account", json: false, csv: false, ...words }, nowMs)

  it("is everything until now, by account, by default; a date lasts to its end, a second does not", () => {
    expect(read({})).toEqual({ groupBy: ["account"], fromMs: 0, toMs: nowMs + 1 })
    expect(
      read({ from: "2026-01-01", to: "2026-01-31", by: "day,key", account: "acct_1" }),
    ).toEqual({
      groupBy: ["day", "key"],
      fromMs: Date.UTC(2026, 0, 1),
      toMs: Date.UTC(2026, 1, 1),
      account: "acct_1",
    })
    expect(read({ from: "60", to: "120", by: "" })).toEqual({
      groupBy: [],
      fromMs: 60_000,
      toMs: 120_000,
    })
  })

  it.each([
    [{ from: "yesterday" }, "no date"],
    [{ to: "2026-02-30" }, "no date"],
    [{ from: "-1" }, "no date"],
    [{ to: "999999999999" }, "no date"],
    [{ from: "2026-01-02", to: "2026-01-01" }, "is after --to"],
    [{ from: "2027-01-01" }, "is after now"],
    [{ by: "account,account" }, "--by"],
    [{ by: "endpoint" }, "--by"],
    [{ json: true, csv: true }, "choose one"],
  ])("refuses %o", (words, reason) => {
    expect(() => read(words)).toThrow(reason)
  })
})

const rows: readonly ReportRow[] = [
  {
    groups: ["svc-lyt", "2026-01-15"],
    requests: 3,
    errors: 1,
    inputTokens: 12,
    outputTokens: 9,
    costMicros: 72_000n,
  },
  {
    groups: ["", "2026-01-15"],
    requests: 1000,
    errors: 0,
    inputTokens: 0,
    outputTokens: 0,
    costMicros: 9_007_199_254_740_993n,
  },
]

describe("what is printed", () => {
  it("is a table with totals, numbers to the right", () => {
    expect(reportTable(["model", "day"], rows).split("\n")).toEqual([
      "MODEL    DAY         REQUESTS  ERRORS  INPUT TOKENS  OUTPUT TOKENS              COST",
      "svc-lyt  2026-01-15         3       1            12              9         Rp 0.0720",
      "-        2026-01-15     1,000       0             0              0  Rp 9,007,199,255",
      "TOTAL                   1,003       1            12              9  Rp 9,007,199,255",
      "",
    ])
    expect(reportTable([], rows.slice(0, 1))).toMatch(/^ +REQUESTS.*\nTOTAL +3 /)
  })

  it("is CSV, or JSON", () => {
    expect(reportCsv(["model", "day"], rows.slice(0, 1))).toBe(
      "model,day,requests,errors,input_tokens,output_tokens,cost_idr\r\nsvc-lyt,2026-01-15,3,1,12,9,0.072\r\n",
    )
    const sums = { requests: 3, errors: 1, input_tokens: 12, output_tokens: 9, cost_idr: 0.072 }
    expect(JSON.parse(reportJson(["model", "day"], rows.slice(0, 1)))).toEqual({
      object: "ledger_report",
      data: [{ model: "svc-lyt", day: "2026-01-15", ...sums }],
      total: sums,
    })
  })

  it("is each invariant, and below it what breaks it", () => {
    const checked = [
      { invariant: "a", rows: 1 },
      { invariant: "b", rows: 2 },
    ]
    expect(proofText({ checked, faults: [] })).toBe(
      "ok     a (1 row)\nok     b (2 rows)\nThe ledger is sound.\n",
    )
    expect(proofText({ checked, faults: [{ invariant: "b", detail: "row 7" }] })).toBe(
      "ok     a (1 row)\nFAULT  b (2 rows)\n         row 7\nThe ledger is not sound.\n",
    )
  })
})

describe("rakit ledger, beside a running server", () => {
  let platform: Platform
  beforeAll(async () => {
    platform = await startPlatform()
    const headers = {
      authorization: `Bearer ${platform.credentials.api_key}`,
      "content-type": "application/json",
    }
    const chat = JSON.stringify({
      model: "svc-lyt",
      messages: [{ role: "user", content: "one two three" }],
    })
    for (let i = 0; i < 3; i++)
      expect(
        (
          await fetch(`${platform.url}/v1/chat/completions`, {
            method: "POST",
            headers,
            body: chat,
          })
        ).status,
      ).toBe(200)
  }, 60_000)
  afterAll(() => platform.close())
  const ledger = (...args: string[]) => runCli(["ledger", ...args, "-c", config], platform.env)

  it("reports and proves a sound ledger; exits with 1 on a broken one", async () => {
    const [table, sound] = await Promise.all([ledger("report", "--by", "model"), ledger("verify")])
    expect(table).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(
        /\nsvc-lyt +3 +0 +12 +9 +Rp 0\.0720\nTOTAL +3 +0 +12 +9 +Rp 0\.0720\n$/,
      ),
    })
    expect(sound).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^(ok {5}.* \(\d+ rows?\)\n){17}The ledger is sound\.\n$/),
    })
    const client = new pg.Client({ connectionString: platform.env.DATABASE_URL })
    await client.connect()
    await client.query("UPDATE ledger_account SET balance_micros = balance_micros + 1")
    await client.end()
    const [broken, refused] = await Promise.all([
      ledger("verify", "--json"),
      ledger("report", "--from", "soon"),
    ])
    const fault = {
      invariant: "each account's balance is the sum of its legs",
      detail: expect.stringMatching(/^account acct_\w+: balance \d+, its legs come to \d+$/),
    }
    expect([broken.code, JSON.parse(broken.stdout)]).toMatchObject([
      1,
      { sound: false, faults: [fault] },
    ])
    expect(refused).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("--from soon: this is no date"),
    })
  }, 60_000)
})
