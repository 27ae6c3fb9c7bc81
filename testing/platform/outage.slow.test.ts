import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { writeMoneyConfig } from "./money-config.ts"
import { type StoppableDatabase, startStoppableDatabase } from "./stoppable-database.ts"

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

const apiKey = "rk-live-outage-0123456789abcdef0123456789"
let folder: string
const closers: (() => Promise<unknown>)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-outage-test-"))
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})

const kept = <A extends { close(): unknown }>(one: A): A => {
  closers.push(async () => void (await one.close()))
  return one
}

const words = (n: number) => Array.from({ length: n }, (_, i) => `w${i}`).join(" ")
const chat = (n: number, stream: boolean) => ({
  model: "svc-omni",
  messages: [{ role: "user", content: words(n) }],
  max_tokens: 400,
  stream,
})

const post = async (url: string, path: string, sent: object) => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(sent),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const codeOf = (text: string): string => JSON.parse(text).error.code

const readiness = async (url: string) => {
  const response = await fetch(`${url}/readyz`)
  const { status, checks } = (await response.json()) as {
    status: string
    checks: readonly { name: string; ok: boolean; reason?: string }[]
  }
  return { http: response.status, status, database: checks.find(({ name }) => name === "database") }
}

const start = (config: string, database: string): Promise<Platform> =>
  startPlatform({
    config,
    database: new URL(database),
    dataDir: folder,
    env: { RAKIT_API_KEY: apiKey },
  })

/** Chats that take some seconds, half of them streams. Resolves when all have begun. */
const chatsInFlight = async (database: StoppableDatabase, url: string, n: number) => {
  const chats = Array.from({ length: n }, (_, i) =>
    post(url, "/v1/chat/completions", chat(150, i % 2 === 0)),
  )
  const open = "SELECT FROM ledger_call WHERE state = 'open'"
  await vi.waitFor(async () => expect(await database.query(open)).toHaveLength(n), 30_000)
  // holds are written without waiting for the disk
  await database.query("CHECKPOINT")
  return { answers: Promise.all(chats) }
}

/** Whole answers, with what they cost. */
const expectWhole = (answers: Awaited<ReturnType<typeof post>>[]) => {
  for (const { status, text, headers } of answers) {
    expect(status, text).toBe(200)
    expect(text).toContain("w149")
    if (headers.get("content-type")?.startsWith("text/event-stream")) {
      expect(text.trimEnd().endsWith("data: [DONE]"), text.slice(-300)).toBe(true)
      expect(text).not.toContain('"error"')
    } else expect(Number(headers.get("x-cost-idr"))).toBeCloseTo(costIdr, 6)
  }
}

/** What a chat costs: the model's price of 151 tokens in and 150 out. */
const costIdr = (151 * 8_000 + 150 * 32_000) / 1_000_000

const standing = async (database: StoppableDatabase) =>
  (
    await database.query<{ state: string; n: number; cost: number }>(
      "SELECT state, count(*)::int AS n, (sum(cost_micros) / 1e6)::float AS cost FROM ledger_call WHERE model = 'svc-omni' GROUP BY state ORDER BY state",
    )
  ).map(({ state, n, cost }) => `${n} ${state} ${cost.toFixed(3)}`)

const sound = async (config: string, env: Readonly<Record<string, string>>) => {
  const verified = await runCli(["ledger", "verify", "-c", config], env)
  expect(verified.code, verified.stdout + verified.stderr).toBe(0)
  const checked = await runCli(["fsck", config], env)
  expect(checked.code, checked.stdout + checked.stderr).toBe(0)
}

it("a database that is stopped: answers in flight arrive, new calls are 503, each is paid once", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, database.url))
  const { answers } = await chatsInFlight(database, server.url, 20)
  await database.stop()
  const refused = await Promise.all(
    ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank"].map((path) =>
      post(
        server.url,
        path,
        path.endsWith("completions")
          ? chat(3, false)
          : {
              model: path.endsWith("rerank") ? "svc-rerank" : "svc-embed",
              input: "x",
              query: "x",
              documents: ["a"],
            },
      ),
    ),
  )
  for (const { status, headers, text } of refused) {
    expect([status, codeOf(text)]).toEqual([503, "database_unavailable"])
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
  }
  await vi.waitFor(async () =>
    expect(await readiness(server.url)).toMatchObject({
      http: 503,
      status: "failing",
      database: { ok: false },
    }),
  )
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  expectWhole(await answers)
  const client = new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 5 })
  const asked = client.chat.completions.create({
    model: "svc-lyt",
    messages: [{ role: "user", content: "hello again" }],
  })
  await database.start()
  expect((await asked).choices[0]?.message.content).toContain("hello again")
  await vi.waitFor(
    async () =>
      expect(await standing(database)).toEqual([`20 settled ${(20 * costIdr).toFixed(3)}`]),
    { timeout: 20_000 },
  )
  await vi.waitFor(async () => expect((await readiness(server.url)).status).toBe("ready"))
  await sound(config, server.env)
})

it("kill -9 while it is down: the next start charges what was kept, once", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000, leaseMs: 3_000 })
  const server = kept(await start(config, database.url))
  const { answers } = await chatsInFlight(database, server.url, 10)
  await database.stop()
  expectWhole(await answers)
  const journals = join(folder, "settlements")
  const [journal] = readdirSync(journals)
  const lines = readFileSync(join(journals, journal!), "utf8").split("\n")
  expect(lines.filter((line) => line.startsWith("{"))).toHaveLength(10)
  await server.stop("SIGKILL")
  await database.start()
  const next = kept(await start(config, database.url))
  const paid = [`10 settled ${(10 * costIdr).toFixed(3)}`]
  expect(await standing(database), "before it serves anybody").toEqual(paid)
  await vi.waitFor(() => expect(readdirSync(journals)).not.toContain(journal), 30_000)
  expect(await standing(database)).toEqual(paid)
  await sound(config, next.env)
})
