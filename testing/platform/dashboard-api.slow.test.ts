import OpenAI from "openai"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"

/**
 * Keys, grants and the audit log through the whole server: sessions, the ledger and the command
 * line are the real ones.
 */
let platform: Platform
let token: string
let account: string
beforeAll(async () => {
  platform = await startPlatform()
  const { email, password } = platform.credentials
  const { json } = await ask("POST", "/dashboard/login", { email, password })
  token = json.token
  account = json.account.id
})
afterAll(() => platform?.close())

const ask = async (
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => {
  const reply = await fetch(platform.url + path, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  const json: any = reply.headers.get("content-type")?.startsWith("application/json")
    ? JSON.parse(text)
    : undefined
  return { status: reply.status, headers: reply.headers, text, json }
}
const chatWith = (apiKey: string) =>
  new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
    model: "svc-lyt",
    messages: [{ role: "user", content: "hello" }],
  })
const cli = (...args: string[]) => runCli(["keys", ...args, "-c", "config/test.yaml"], platform.env)

describe("keys", () => {
  it("live: made, used, limited, revoked", async () => {
    const { status, headers, json } = await ask("POST", "/dashboard/keys", { name: "laptop" })
    expect([status, headers.get("cache-control")]).toEqual([201, "no-store"])
    expect((await chatWith(json.key)).choices[0]?.message.content).toBe("hello")
    expect((await ask("GET", "/dashboard/keys")).json.data[0]).toMatchObject({
      id: json.id,
      spent_this_month_idr: 0.009,
    })
    await ask("PATCH", `/dashboard/keys/${json.id}`, { limits: { rpm: 1 } })
    await expect(chatWith(json.key)).rejects.toMatchObject({
      status: 429,
      code: "rate_limit_error",
    })
    await ask("DELETE", `/dashboard/keys/${json.id}`)
    await expect(chatWith(json.key)).rejects.toMatchObject({
      status: 401,
      code: "authentication_error",
    })
  })

  it("limit the bodies that they send, not the files", async () => {
    const limits = { body_mb: 1 }
    const { json } = await ask("POST", "/dashboard/keys", { name: "small", limits })
    expect(json.limits).toMatchObject(limits)
    const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: json.key, maxRetries: 0 })
    const embed = () =>
      client.embeddings.create({ model: "svc-embed", input: "a".repeat(1.5 * 2 ** 20) })
    await expect(embed()).rejects.toMatchObject({
      ...{ status: 413, code: "payload_too_large" },
      message: expect.stringContaining(
        "larger than 1 MB, the limit of this key (`limits.body_mb`)",
      ),
    })
    await ask("PATCH", `/dashboard/keys/${json.id}`, { limits: { body_mb: 2 } })
    expect((await embed()).data).toHaveLength(1)
    const file = new File(["{}\n".repeat(2 ** 20)], "lines.jsonl")
    expect(await client.files.create({ file, purpose: "batch" })).toMatchObject({
      bytes: 3 * 2 ** 20,
    })
  })

  it("reach the endpoints of their scopes only", async () => {
    const { json } = await ask("POST", "/dashboard/keys", { name: "k", scopes: ["embeddings"] })
    await expect(chatWith(json.key)).rejects.toMatchObject({
      status: 403,
      code: "permission_denied",
    })
    const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: json.key })
    expect((await client.embeddings.create({ model: "svc-embed", input: "a" })).data).toHaveLength(
      1,
    )
  })

  it("of the playground are live; a session's token is no key, and a key is no session", async () => {
    const { json } = await ask("POST", "/dashboard/playground-key")
    expect((await chatWith(json.key)).choices[0]?.message.content).toBe("hello")
    await expect(chatWith(token)).rejects.toMatchObject({ status: 401 })
    expect(
      (await ask("GET", "/dashboard/keys", undefined, { authorization: `Bearer ${json.key}` }))
        .status,
    ).toBe(401)
  })

  it("live in the same lists as those of the command line", async () => {
    const made = await cli(
      "create",
      "--name",
      "from the shell",
      "--scope",
      "chat.completions",
      "--scope",
      "embeddings",
      "--json",
    )
    const { id, key } = JSON.parse(made.stdout)
    expect((await ask("GET", "/dashboard/keys?limit=1")).json.data[0]).toMatchObject({
      id,
      name: "from the shell",
      scopes: ["chat.completions", "embeddings"],
    })
    expect((await chatWith(key)).choices).toHaveLength(1)
    const listed = await cli("list", "--email", platform.credentials.email)
    expect(listed.stdout.split("\n")[0]).toMatch(/^ID +KEY +MODE/)
    expect(listed.stdout).toContain(id)
    expect(listed.stdout).not.toContain(key)
    const revoked = await cli("revoke", id)
    expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringContaining("is revoked")])
    // another process revoked it: this server notices within 5 s
    await vi.waitFor(() => expect(chatWith(key)).rejects.toMatchObject({ status: 401 }), {
      timeout: 5_000,
      interval: 100,
    })
    const { data } = (await ask("GET", `/admin/audit?target=${id}`)).json
    expect(
      data.map(({ actor, action }: { actor: string; action: string }) => [actor, action]),
    ).toEqual([
      ["cli", "key.revoke"],
      ["cli", "key.create"],
    ])
  }, 60_000)

  it("the command line says what is wrong, and exits with 1", async () => {
    const { code, stdout, stderr } = await cli("create", "--scope", "nope")
    expect([code, stdout, stderr]).toEqual([
      1,
      "",
      expect.stringContaining("scopes[0]: expected '*' or one of "),
    ])
  }, 60_000)
})

describe("money", () => {
  const grant = (body: object, headers = {}) =>
    ask("POST", `/admin/accounts/${account}/grants`, body, headers)
  const balance = async () => (await ask("GET", "/dashboard/me")).json.balance_idr

  it("an admin adds and takes, never below zero; the audit log and the ledger agree", async () => {
    const before = await balance()
    expect((await grant({ amount_idr: 100.5, reason: "a gift" })).json.balance_idr).toBe(
      before + 100.5,
    )
    expect(
      (await grant({ amount_idr: -(before + 101), reason: "too much" })).json.error,
    ).toMatchObject({ code: "conflict", param: "amount_idr" })
    expect(await balance()).toBe(before + 100.5)
    const { data } = (await ask("GET", `/admin/audit?target=${account}&limit=2`)).json
    expect(data).toMatchObject([
      { actor: account, action: "account.grant.refuse", after: { reason: "too much" } },
      {
        actor: account,
        action: "account.grant",
        before: { balance_idr: before },
        after: { balance_idr: before + 100.5, amount_idr: 100.5, reason: "a gift" },
      },
    ])
    const db = new pg.Client({ connectionString: platform.env.DATABASE_URL })
    await db.connect()
    const { rows } = await db
      .query("SELECT amount_micros, type, reason FROM ledger_transfer WHERE entry_id = $1", [
        data[1].after.entry,
      ])
      .finally(() => db.end())
    expect(rows).toEqual([{ amount_micros: "100500000", type: "grant", reason: "a gift" }])
  })

  it("many grants at once all count; one with an Idempotency-Key once", async () => {
    const before = await balance()
    const replies = await Promise.all(
      Array.from({ length: 40 }, () => grant({ amount_idr: 0.000001, reason: "many" })),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    for (let time = 0; time < 2; time++)
      await grant({ amount_idr: 1, reason: "once" }, { "idempotency-key": "grant-once" })
    expect(await balance()).toBeCloseTo(before + 1.00004, 6)
  })
})

describe("administration", () => {
  it("suspends and takes back; the account's keys follow at once", async () => {
    const email = "ada@example.com"
    const signed = await ask("POST", "/dashboard/signup", { email, password: "correct horse" })
    expect(signed.status).toBe(201)
    const id = (await ask("GET", `/admin/accounts?q=${email}`)).json.data[0].id
    const { stdout } = await cli("create", "--email", email)
    const key = stdout.trim()
    await expect(chatWith(key)).rejects.toMatchObject({ status: 403, code: "email_not_verified" })
    await ask("POST", `/admin/accounts/${id}/verify`)
    expect((await chatWith(key)).choices).toHaveLength(1)
    await ask("POST", `/admin/accounts/${id}/suspend`)
    await expect(chatWith(key)).rejects.toMatchObject({ status: 403, code: "account_suspended" })
    await ask("POST", `/admin/accounts/${id}/unsuspend`)
    expect((await chatWith(key)).choices).toHaveLength(1)
  }, 60_000)

  it("exports the audit log", async () => {
    const { headers, text } = await ask("GET", "/admin/audit?format=csv&action=account.suspend")
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8")
    expect(headers.get("content-disposition")).toBe('attachment; filename="audit.csv"')
    expect(text.split("\r\n")).toHaveLength(3)
  })

  it("answers bad input with the contract's error over HTTP too", async () => {
    for (const [method, path, body, status, code] of [
      ["DELETE", "/dashboard/keys/%00", undefined, 404, "not_found"],
      ["DELETE", "/dashboard/keys/..%2F..", undefined, 404, "not_found"],
      ["GET", "/dashboard/keys?after=%00", undefined, 400, "invalid_request_error"],
      ["GET", "/admin/accounts?q=%00", undefined, 400, "invalid_request_error"],
      ["GET", "/admin/audit?actor=%00&format=csv", undefined, 400, "invalid_request_error"],
      ["POST", "/admin/accounts/%ff/suspend", undefined, 400, "invalid_request_error"],
      ["PATCH", "/dashboard/keys", {}, 405, "method_not_allowed"],
    ] as const) {
      const reply = await ask(method, path, body)
      if (path.includes("%ff")) expect(reply.status).toBeGreaterThanOrEqual(400)
      else expect([path, reply.status, reply.json?.error.code]).toEqual([path, status, code])
      expect(reply.status).toBeLessThan(500)
    }
  })

  it("shows no key in a log line", () => {
    expect(platform.output().stderr).not.toMatch(/svc_(live|test)_[A-Za-z0-9]{32}/)
  })
})

it("a refused request is an error of its key in the usage, wherever it is refused", async () => {
  const { key, id } = (await ask("POST", "/dashboard/keys", { name: "careless" })).json
  const post = (body: string, type = "application/json") =>
    fetch(`${platform.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": type },
      body,
    })
  const replies = await Promise.all([
    post("{"),
    post("{}"),
    post('{"model":"svc-lyt","messages":[]}'),
    post('{"model":"gpt-9","messages":[{"role":"user","content":"x"}]}'),
    post("x", "text/plain"),
  ])
  expect(replies.map(({ status }) => status)).toEqual([400, 400, 400, 400, 415])
  await chatWith(key)
  const { data } = (await ask("GET", "/dashboard/usage?group_by=key")).json
  expect(data.find((row: { readonly key: string }) => row.key === id)).toMatchObject({
    ...{ requests: 6, errors: 5 },
  })
})
