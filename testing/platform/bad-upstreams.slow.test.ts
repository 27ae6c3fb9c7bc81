import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import pg from "pg"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { openExpired } from "../../plugins/backend-remote/testing/expired-upstream.ts"
import {
  json,
  openScripted,
  type ScriptedUpstream,
} from "../../plugins/backend-remote/testing/scripted-upstream.ts"
import { errorOf } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"

/** A whole server whose remote models are all wrong in some way, from its start on. */
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
const secret = "sk-upstream-secret"
const folder = mkdtempSync(join(tmpdir(), "rakit-bad-upstreams-"))
let other: ScriptedUpstream
let locked: ScriptedUpstream
let well: ScriptedUpstream
let expired: Awaited<ReturnType<typeof openExpired>>
let database: TestDatabase
let platform: Platform
let client: OpenAI

const entry = (id: string, upstream: object, more: object = {}) => ({
  id,
  task: "chat",
  backend: "remote",
  limits: { contextTokens: 4096, maxOutputTokens: 512 },
  price: { input: 1000, output: 2000 },
  options: { upstreams: [{ model: "m", key: `\${UPSTREAM_KEY}`, ...upstream }], ...more },
})

beforeAll(async () => {
  other = await openScripted()
  other.list(json({ object: "list", data: [{ id: "internal-llama-70b" }] }))
  other.play(json({ error: { message: "The model `m` does not exist." } }, 404))
  locked = await openScripted()
  const refusal = json({ error: { message: `bad key ${secret}` } }, 401)
  locked.list(refusal)
  locked.play(refusal)
  well = await openScripted()
  expired = await openExpired(folder)
  database = await openTestDatabase()
  const config = join(folder, "rakit.yaml")
  const { url, caFile } = expired
  writeFileSync(
    config,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "database-postgres": { url: `\${DATABASE_URL}` },
        "signing-keys": {},
        "mail-smtp": {},
        "billing-ledger": {},
        accounts: { apiKey, defaultLimits: { rpm: 1e6, rpd: 1e6, concurrency: 100 } },
        "idempotency-postgres": {},
        "backend-remote": {},
        "endpoint-models": {},
        "endpoint-chat": {},
      },
      models: [
        entry("other-list", { url: other.url, name: "vllm-a" }),
        entry("expired", { url, caFile }),
        entry("gone", { url: "http://127.0.0.1:9" }),
        entry("no-host", { url: "http://no-such-host.invalid:8000" }),
        entry("locked", { url: locked.url }),
        entry("well", { url: well.url }),
        entry("chain", { url, caFile }, { fallback: ["well"] }),
      ],
    }),
  )
  platform = await startPlatform({
    config,
    database: new URL(database.url),
    env: { UPSTREAM_KEY: secret },
  })
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
}, 120_000)
afterAll(async () => {
  await platform?.close()
  expired?.close()
  await Promise.all([other, locked, well].map((upstream) => upstream?.close()))
  await database?.close()
  rmSync(folder, { recursive: true, force: true })
})

const get = async (path: string) => (await fetch(`${platform.url}${path}`)).text()
const wrong = ["other-list", "expired", "gone", "no-host", "locked"]

it("names each in /readyz and in the log, with what to do", async () => {
  const ready = JSON.parse(await get("/readyz")) as {
    readonly status: string
    readonly models: readonly { readonly id: string; readonly served_by: string }[]
    readonly checks: readonly { readonly name: string; readonly reason?: string }[]
  }
  const reason = ready.checks.find(({ name }) => name === "backend-remote")?.reason ?? ""
  const said: Readonly<Record<string, string>> = {
    "other-list": `vllm-a (${other.host}): it does not serve 'm', but 'internal-llama-70b': correct model, or serve it there`,
    expired: `u1 (${new URL(expired.url).host}): its certificate has expired: renew it (CERT_HAS_EXPIRED)`,
    gone: "u1 (127.0.0.1:9): nothing listens at the address: start the server, or correct url (ECONNREFUSED)",
    locked: `u1 (${locked.host}): it refuses the key: correct key (status 401: bad key ***)`,
  }
  expect(ready.status).toBe("failing")
  const { stdout, stderr } = platform.output()
  for (const [id, text] of Object.entries(said)) {
    expect(reason).toContain(`${id}: ${text}`)
    expect(ready.models.find((model) => model.id === id)?.served_by).toBe(`remote ${text}`)
    expect(stdout + stderr).toContain(text.slice(text.indexOf("): ") + 3))
  }
  // a name server may be away, too
  expect(reason).toMatch(
    /no-host: u1 \(no-such-host\.invalid:8000\): (there is no such host: correct url|the name server)/,
  )
  // a chain whose end is well serves, and its trouble is there all the same
  expect(reason).not.toContain("chain")
  expect(ready.models.find(({ id }) => id === "chain")?.served_by).toMatch(
    /its certificate has expired.*, else well$/,
  )
  expect(stdout + stderr + JSON.stringify(ready)).not.toContain(secret)
})

it("charges nothing for calls that fail, once for those that the chain serves, with retries under one key", async () => {
  const ask = (model: string, key: string) =>
    client.chat.completions.create(
      { model, messages: [{ role: "user", content: "hello" }], max_tokens: 8 },
      { headers: { "Idempotency-Key": key } },
    )
  for (const model of wrong)
    for (const key of [`${model}-1`, `${model}-1`])
      expect(await errorOf(ask(model, key))).toMatchObject({ status: 500, code: "backend_error" })
  const [first, second] = [await ask("chain", "chain-1"), await ask("chain", "chain-1")]
  expect(second.id).toBe(first.id)
  const sql = new pg.Client({ connectionString: database.url })
  await sql.connect()
  const { rows } = await sql
    .query(
      "SELECT state, count(*)::int AS calls, sum(cost_micros)::text AS cost FROM ledger_call GROUP BY state ORDER BY state",
    )
    .finally(() => sql.end())
  // 5 tokens at Rp1,000 and 2 at Rp2,000 for a million
  expect(rows).toEqual([
    { state: "settled", calls: 1, cost: "9000" },
    { state: "voided", calls: wrong.length * 2, cost: "0" },
  ])
})

it("shows everybody no address, name, file, key or model of an upstream in GET /v1/models", async () => {
  const list = await get("/v1/models")
  const each = await Promise.all([...wrong, "well", "chain"].map((id) => get(`/v1/models/${id}`)))
  const shown = [list, ...each].join("\n")
  expect(JSON.parse(each.at(-1)!)).toMatchObject({ id: "chain", served_by: "remote, else well" })
  expect(JSON.parse(each[0]!)).toMatchObject({ id: "other-list", served_by: "remote" })
  const ports = [other, locked, well, expired].map(({ url }) => new URL(url).port)
  for (const word of [
    ...["127.0.0.1", "no-such-host", "http:", "https:", folder, "ca.pem", "vllm-a", "u1"],
    ...[secret, "UPSTREAM_KEY", "internal-llama-70b", "certificate", "refuses"],
    ...ports.map((port) => `:${port}`),
  ])
    expect([word, shown.includes(word)]).toEqual([word, false])
})
