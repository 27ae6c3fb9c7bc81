import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

/** What administrators read of the whole server: revenue, its state and its prices. */
let platform: Platform
let admin: string
let customer: string
beforeAll(async () => {
  platform = await startPlatform()
  const { email, password } = platform.credentials
  admin = (await post("/dashboard/login", { email, password })).json.token
  const other = { email: "user@example.com", password: "a long password" }
  await post("/dashboard/signup", other)
  customer = (await post("/dashboard/login", other)).json.token
})
afterAll(() => platform?.close())

const replyOf = async (reply: Response) => {
  const text = await reply.text()
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  const json: any = reply.headers.get("content-type")?.startsWith("application/json")
    ? JSON.parse(text)
    : undefined
  return { status: reply.status, headers: reply.headers, text, json }
}
const post = async (path: string, body: unknown) =>
  replyOf(
    await fetch(platform.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  )
const get = async (path: string, token: string | undefined = admin) =>
  replyOf(
    await fetch(platform.url + path, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    }),
  )
const client = (apiKey: string) =>
  new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })

describe.each(["/admin/revenue", "/admin/server", "/admin/prices"])("GET %s", (path) => {
  it("is for administrators, and who else asks is in the audit log", async () => {
    expect((await get(path)).status).toBe(200)
    const refused = await get(path, customer)
    expect([refused.status, refused.json.error.code]).toEqual([403, "permission_denied"])
    expect(Object.keys(refused.json)).not.toContain("object")
    expect((await get(path, platform.credentials.api_key)).status).toBe(401)
    expect((await fetch(platform.url + path)).status).toBe(401)
    await vi.waitFor(async () => {
      const { json } = await get("/admin/audit?limit=100")
      expect(json.data.map(({ target }: { target: string }) => target)).toContain(
        path.slice(1).replace("/", "."),
      )
    })
  })
})

describe("the revenue", () => {
  it("is what a call costs, by the account whose id a list of accounts has", async () => {
    await client(platform.credentials.api_key).chat.completions.create({
      model: "svc-lyt",
      messages: [{ role: "user", content: "hello" }],
    })
    const { json } = await get("/admin/revenue")
    expect(json.total).toEqual({ requests: 1, charged_idr: 0.009 })
    expect(json.models).toEqual([{ name: "svc-lyt", requests: 1, charged_idr: 0.009 }])
    expect(json.paying_accounts).toBe(1)
    expect(json.credit.free_credit.entries).toBeGreaterThan(0)
    const [{ name }] = json.accounts
    const named = await get(`/admin/accounts?ids=${name},acct_none`)
    expect(named.json.data).toMatchObject([{ id: name, email: platform.credentials.email }])
    const { json: refused, status } = await get(`/admin/accounts?ids=${"a,".repeat(101)}`)
    expect([status, refused.error.param]).toEqual([400, "ids"])
  })
})

describe("the server", () => {
  it("says how it is, what it uses, and what its models do", async () => {
    const { json, headers } = await get("/admin/server")
    expect(headers.get("cache-control")).toBe("no-store")
    expect(json).toMatchObject({
      ...{ object: "server", role: "all", status: "ready" },
      version: expect.stringMatching(/^\d+\.\d+/),
    })
    expect(json.checks).toContainEqual({ name: "database", ok: true })
    const { memory, uptime_seconds, started_at, cores, event_loop, disk, pid } = json.process
    expect(pid).toBe(platform.process.pid)
    expect(memory.rss_bytes).toBeGreaterThan(memory.heap_used_bytes)
    expect(memory.limit_bytes).toBeGreaterThan(memory.rss_bytes)
    expect(uptime_seconds).toBeGreaterThanOrEqual(0)
    expect(Math.abs(started_at + uptime_seconds - Date.now() / 1000)).toBeLessThan(60)
    expect(cores).toBeGreaterThan(0)
    expect(event_loop).toBeGreaterThan(0)
    expect(event_loop).toBeLessThanOrEqual(1)
    expect(disk.total_bytes).toBeGreaterThan(disk.free_bytes)
    const chat = json.models.find(({ id }: { id: string }) => id === "svc-lyt")
    expect(chat).toMatchObject({
      ...{ task: "chat", state: "ready", running: 0, waiting: 0, batch_running: 0 },
      served_by: expect.any(String),
    })
  })

  it("counts what waits in the database", async () => {
    await vi.waitFor(
      async () => {
        const names = (await get("/admin/server")).json.metrics.map(
          ({ name, labels }: { name: string; labels: Record<string, string> }) =>
            [name, ...Object.values(labels)].join(" "),
        )
        for (const name of [
          "rakit_batches in_progress",
          "rakit_queue_jobs webhook-delivery dead",
          "rakit_ingest_files waiting",
          "rakit_db_client_connection_max",
        ])
          expect(names).toContain(name)
      },
      { timeout: 15_000 },
    )
  })

  it("tells nobody else more than before", async () => {
    const text = (await get("/readyz", undefined)).text
    for (const word of ["rss_bytes", "pid", "hostname", "metrics"]) expect(text).not.toContain(word)
  })
})

describe("the prices", () => {
  it("are those of the config, exact, with what they come from", async () => {
    const { json } = await get("/admin/prices")
    expect(json).toMatchObject({ object: "prices", batch_price_factor: 0.5 })
    const chat = json.models.find(({ id }: { id: string }) => id === "svc-lyt")
    expect(chat.origin).toBe("config")
    const by = Object.fromEntries(
      chat.prices.map(({ kind, ...price }: { kind: string }) => [kind, price]),
    )
    const listed = (await get("/v1/models/svc-lyt", undefined)).json.pricing
    expect(Number(by.input.idr)).toBe(listed.input_idr)
    expect(Number(by.output.idr)).toBe(listed.output_idr)
    expect(Number(by.input.batch_idr)).toBe(listed.input_idr / 2)
    expect(by.input.per).toBe("1000000 tokens")
    for (const { idr, configured_idr } of chat.prices)
      for (const price of [idr, configured_idr]) expect(price).toMatch(/^\d+(\.\d+)?$/)
  })
})
