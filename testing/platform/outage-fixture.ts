import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, vi } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import type { StoppableDatabase } from "./stoppable-database.ts"

export const apiKey = "rk-live-outage-0123456789abcdef0123456789"
/** The data folder of the running test. */
export let folder: string
const closers: (() => Promise<unknown>)[] = []

/** Makes the folder before each test of the calling file, and closes what was kept after it. */
export const useOutageFixture = (): void => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "rakit-outage-test-"))
  })
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    rmSync(folder, { recursive: true, force: true })
  })
}

export const kept = <A extends { close(): unknown }>(one: A): A => {
  closers.push(async () => void (await one.close()))
  return one
}

const words = (n: number) => Array.from({ length: n }, (_, i) => `w${i}`).join(" ")
export const chat = (n: number, stream: boolean) => ({
  model: "svc-omni",
  messages: [{ role: "user", content: words(n) }],
  max_tokens: 400,
  stream,
})

export const post = async (url: string, path: string, sent: object) => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(sent),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

export const codeOf = (text: string): string => JSON.parse(text).error.code

export const readiness = async (url: string) => {
  const response = await fetch(`${url}/readyz`)
  const { status, checks } = (await response.json()) as {
    status: string
    checks: readonly { name: string; ok: boolean; reason?: string }[]
  }
  return { http: response.status, status, database: checks.find(({ name }) => name === "database") }
}

export const start = (
  config: string,
  database: string | "embedded",
  dataDir = folder,
): Promise<Platform> =>
  startPlatform({
    config,
    database: database === "embedded" ? database : new URL(database),
    dataDir,
    env: { RAKIT_API_KEY: apiKey, RAKIT_TEST_BATCH_POLL_MS: "200" },
  })

/**
 * Chats that take some seconds, half of them streams. Resolves when all have begun, and the calls
 * that were admitted ahead of requests, which are open as well, are used or given back.
 */
export const chatsBegun = async (
  database: Pick<StoppableDatabase, "query">,
  url: string,
  n: number,
) => {
  const answers = Promise.all(
    Array.from({ length: n }, (_, i) => post(url, "/v1/chat/completions", chat(150, i % 2 === 0))),
  )
  // a test that fails before it awaits them fails by its own error alone
  answers.catch(() => {})
  const isOld = "admitted_at < clock_timestamp() - interval '500 ms'"
  const open = `SELECT ${isOld} AS old FROM ledger_call WHERE state = 'open'`
  await vi.waitFor(
    async () => expect(await database.query(open)).toEqual(Array(n).fill({ old: true })),
    30_000,
  )
  return { answers }
}

/** As `chatsBegun`, with their holds on the disk, which are written without waiting for it. */
export const chatsInFlight = async (database: StoppableDatabase, url: string, n: number) => {
  const begun = await chatsBegun(database, url, n)
  await database.query("CHECKPOINT")
  return begun
}

/** Whole answers, with what they cost. */
export const expectWhole = (answers: Awaited<ReturnType<typeof post>>[]) => {
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
export const costIdr = (151 * 8_000 + 150 * 32_000) / 1_000_000

export const standing = async (database: Pick<StoppableDatabase, "query">) =>
  (
    await database.query<{ state: string; n: number; cost: number }>(
      "SELECT state, count(*)::int AS n, (sum(cost_micros) / 1e6)::float AS cost FROM ledger_call WHERE model = 'svc-omni' GROUP BY state ORDER BY state",
    )
  ).map(({ state, n, cost }) => `${n} ${state} ${cost.toFixed(3)}`)

export const sound = async (config: string, env: Readonly<Record<string, string>>) => {
  const verified = await runCli(["ledger", "verify", "-c", config], env)
  expect(verified.code, verified.stdout + verified.stderr).toBe(0)
  const checked = await runCli(["fsck", config], env)
  expect(checked.code, checked.stdout + checked.stderr).toBe(0)
}

/** The first answer that is 200; whatever came before is an outage that says so. */
export const untilWell = async (url: string) => {
  const beganMs = performance.now()
  for (;;) {
    const { status, text, headers } = await post(url, "/v1/chat/completions", chat(3, false))
    if (status === 200) return performance.now() - beganMs
    expect([503, 507], text).toContain(status)
    expect(["database_unavailable", "storage_full"]).toContain(codeOf(text))
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
  }
}
