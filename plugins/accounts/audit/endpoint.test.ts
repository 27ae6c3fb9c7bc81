import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Caller, PortError } from "../../../core/index.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
let root: Caller
let actor: string
let made = 0
beforeAll(async () => {
  api = await openApiFixture()
  root = await api.makeAccount({ role: "admin" })
})
afterAll(() => api?.close())
beforeEach(() => {
  actor = `acct_${++made}`
})

const ask = (query: string) => api.ask(`GET /admin/audit?${query}`, { as: root })
const refusal = ({ status, json }: Awaited<ReturnType<typeof ask>>) => [
  status,
  json.code,
  json.param,
]
const record = (more: object = {}, tx?: Parameters<typeof api.deps.audit.record>[1]) =>
  api.deps.audit.record({ actor, action: "key.create", target: "key_1", ...more }, tx)
const run = Effect.runPromise
const targets = async (query: string) =>
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  (await ask(`actor=${actor}&${query}`)).json.data.map(({ target }: any) => target)

describe("the record", () => {
  it("is found by an e-mail address: the account's entries, and attempts on the address", async () => {
    const email = `who${made}@audit.example`
    const id = (await api.makeAccount({ email })).tenant.account
    await run(api.deps.audit.record({ actor: id, action: "key.create", target: "key_9" }))
    await run(record({ action: "login.fail", target: email }))
    await run(record({ action: "account.suspend", target: id }))
    const found = async (query: string) =>
      (await ask(query)).json.data.map(({ action }: { action: string }) => action)
    expect(await found(`actor=${email.toUpperCase()}`)).toEqual(["key.create"])
    expect(await found(`target=${email}`)).toEqual(["account.suspend", "login.fail"])
    expect(await found("actor=nobody@audit.example")).toEqual([])
  })

  it("shows who, what, before, after, when", async () => {
    await run(record({ before: { name: "a" }, after: { name: "b" } }))
    await run(record({ action: "login.fail" }))
    const { status, json } = await ask(`actor=${actor}`)
    const entry = {
      id: expect.stringMatching(/^audit_\w{24}$/),
      object: "audit_entry",
      actor,
      actor_email: null,
      target: "key_1",
      target_email: null,
      created_at: Math.floor(api.clock.nowMs() / 1000),
    }
    expect([status, json]).toEqual([
      200,
      {
        object: "list",
        data: [
          { ...entry, action: "login.fail", before: null, after: null },
          { ...entry, action: "key.create", before: { name: "a" }, after: { name: "b" } },
        ],
        has_more: false,
        first_id: json.data[0].id,
        last_id: json.data[1].id,
      },
    ])
  })

  it("names accounts by the address that they have", async () => {
    await run(record({ actor: root.tenant.account, target: root.tenant.account }))
    const [entry] = (await ask(`target=${root.tenant.account}&limit=1`)).json.data
    expect(entry.actor_email).toMatch(/@/)
    expect(entry.target_email).toBe(entry.actor_email)
  })

  it("is only ever added to", async () => {
    await run(record())
    const { tables } = api
    await expect(
      tables.updateTable("accounts_audit").set({ actor: "x" }).where("actor", "=", actor).execute(),
    ).rejects.toThrow("append-only")
    await expect(
      tables.deleteFrom("accounts_audit").where("actor", "=", actor).execute(),
    ).rejects.toThrow("append-only")
    await expect(sql`TRUNCATE accounts_audit`.execute(tables)).rejects.toThrow("append-only")
    expect(await api.audit({ actor })).toHaveLength(1)
  })

  it("commits with the change, or not at all", async () => {
    const failing = api.deps.database.transaction((tx) =>
      Effect.andThen(record({}, tx), Effect.fail(new PortError({ port: "test", message: "no" }))),
    )
    await run(Effect.flip(failing))
    expect(await api.audit({ actor })).toEqual([])
    await run(api.deps.database.transaction((tx) => record({}, tx)))
    expect(await api.audit({ actor })).toHaveLength(1)
  })

  it("takes any text that somebody aimed at", async () => {
    const hostile = [
      "a\0b",
      "\ud800",
      "x".repeat(10_000),
      "'; DROP TABLE accounts_audit; --",
      "🔑".repeat(1_000),
    ]
    for (const text of hostile)
      await run(record({ target: text, after: { text, list: [text, null, 5] } }))
    const rows = await api.audit({ actor })
    expect(rows.map(({ target }) => [...target].length)).toEqual([3, 1, 400, 32, 400])
    expect(rows.map(({ after }) => after)).toEqual(
      hostile.map((text) => ({ text, list: [text, null, 5] })),
    )
  })
})

describe("the list", () => {
  it("goes back in pages, in the order things were done", async () => {
    const all: string[] = []
    for (let n = 0; n < 9; n++) {
      if (n % 4 === 0) api.clock.advance(1)
      await run(record({ target: `t${n}` }))
      all.unshift(`t${n}`)
    }
    const seen: string[] = []
    for (let after = ""; ; ) {
      const { json } = await ask(`actor=${actor}&limit=2${after}`)
      seen.push(...json.data.map(({ target }: { target: string }) => target))
      // new entries are before those already read
      await run(record({ target: "later" }))
      if (!json.has_more) break
      after = `&after=${json.last_id}`
    }
    expect(seen).toEqual(all)
  })

  it("is filtered by actor, action, target and time", async () => {
    api.clock.advance(86_400_000)
    const startSeconds = Math.floor(api.clock.nowMs() / 1000)
    await run(record({ target: "a" }))
    api.clock.advance(2_000)
    await run(record({ target: "b", action: "key.revoke" }))
    expect(await targets("")).toEqual(["b", "a"])
    expect(await targets("action=key.revoke&target=&from=&to=")).toEqual(["b"])
    expect(await targets("target=a")).toEqual(["a"])
    expect(await targets("action=key.revoke&target=a")).toEqual([])
    expect(await targets(`from=${startSeconds + 1}`)).toEqual(["b"])
    expect(await targets(`from=${startSeconds}&to=${startSeconds + 2}`)).toEqual(["a"])
    const day = new Date(api.clock.nowMs()).toISOString().slice(0, 10)
    expect(await targets(`from=${day}&to=${day}`)).toEqual(["b", "a"])
    expect(await targets("to=0001-01-01")).toEqual([])
    expect(await targets("from=0000-01-01&to=9999-12-31")).toEqual(["b", "a"])
    expect(await targets(`actor=${encodeURIComponent("' OR 1=1 --")}`)).toEqual([])
  })

  it.each<[string, string]>([
    ["from=2026-02-30", "from"],
    ["to=soon", "to"],
    ["from=2026-02-01&to=2026-01-01", "to"],
    ["limit=101", "limit"],
    ["after=audit_unknown", "after"],
    ["after=%00", "after"],
    ["actor=%00", "actor"],
    [`action=${"x".repeat(401)}`, "action"],
    ["format=xml", "format"],
    ["format=", "format"],
  ])("refuses %s", async (query, param) => {
    expect(refusal(await ask(query))).toEqual([400, "invalid_request_error", param])
  })
})

describe("as CSV", () => {
  it("is a file that no spreadsheet runs", async () => {
    await run(record({ target: "=cmd|' /C calc'!A0", after: { name: 'a "b", c' } }))
    const { status, headers, text } = await ask(`actor=${actor}&format=csv`)
    expect([status, headers["content-disposition"]]).toEqual([
      200,
      'attachment; filename="audit.csv"',
    ])
    const [row] = await api.audit({ actor })
    expect(text).toBe(
      `id,created_at,actor,action,target,before,after\r\n${row?.id},${new Date(api.clock.nowMs()).toISOString()},${actor},key.create,'=cmd|' /C calc'!A0,,"{""name"":""a \\""b\\"", c""}"\r\n`,
    )
  })

  it("holds everything that the filter lets through, however much it is", async () => {
    await sql`
      INSERT INTO accounts_audit (id, actor, action, target, created_at)
      SELECT ${actor} || n, ${actor}, 'bulk', n, ${new Date(api.clock.nowMs())}::timestamptz + n / 700 * interval '1 ms' FROM generate_series(1, 2500) n`.execute(
      api.tables,
    )
    const { text } = await ask(`actor=${actor}&format=csv&limit=1`)
    const lines = text.trimEnd().split("\r\n")
    expect(lines.slice(1).map((line) => Number(line.split(",")[4]))).toEqual(
      Array.from({ length: 2_500 }, (_, n) => 2_500 - n),
    )
    expect((await ask(`actor=${actor}&action=none&format=csv`)).text).toBe(
      "id,created_at,actor,action,target,before,after\r\n",
    )
  })
})
