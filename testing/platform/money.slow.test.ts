import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"
import { writeMoneyConfig } from "./money-config.ts"

/**
 * Money under load, on whole servers: exactly what a balance covers succeeds, and a killed process
 * affects only its own calls.
 */

const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
let folder: string
let closers: (() => Promise<unknown>)[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-money-"))
  closers = []
})
afterEach(async () => {
  for (const close of closers.reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})

const kept = <A extends { close(): Promise<unknown> }>(opened: A): A => {
  closers.push(() => opened.close())
  return opened
}

interface Outcome {
  readonly status: number
  readonly code: string | undefined
  readonly costIdr: number
}

const post = async (url: string, path: string, body: object): Promise<Outcome> => {
  const reply = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  const json = (await reply.json()) as { error?: { code?: string } }
  return {
    status: reply.status,
    code: json.error?.code,
    costIdr: Number(reply.headers.get("x-cost-idr") ?? 0),
  }
}

const rerank = { model: "svc-rerank", query: "q", documents: ["a", "b"] }
/** Rp2.5 a call: the hold and the price are the same. */
const ask = ({ url }: Platform) => post(url, "/v1/rerank", rerank)

const countOf = (outcomes: readonly Outcome[]) => ({
  paid: outcomes.filter(({ status }) => status === 200).length,
  refused: outcomes.filter(({ status, code }) => status === 402 && code === "insufficient_quota")
    .length,
})

interface Proof {
  readonly faults: readonly unknown[]
}

const verify = async (config: string, env: Readonly<Record<string, string>>) => {
  const { code, stdout, stderr } = await runCli(["ledger", "verify", "-c", config, "--json"], env)
  expect(stderr).not.toMatch(/Error/)
  return { code, faults: (JSON.parse(stdout) as Proof).faults }
}

const standing = async (database: TestDatabase) => {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query(
    `SELECT balance_micros::text AS balance, held_micros::text AS held, (SELECT count(*)::int FROM ledger_call WHERE state = 'open') AS open,
       (SELECT coalesce(sum(open_calls), 0)::int FROM ledger_key) AS slots FROM ledger_account WHERE account_id NOT LIKE '@%'`,
  )
  await client.end()
  return rows[0] as { balance: string; held: string; open: number; slots: number }
}

/** 1,000 calls at once, spread over the servers. */
const storm = (servers: readonly Platform[]) =>
  Promise.all(Array.from({ length: 1000 }, (_, i) => ask(servers[i % servers.length]!)))

describe("1,000 parallel calls on a balance that covers 100", () => {
  it("one server on its embedded database: exactly 100 succeed, the rest is 402, and the ledger sums", async () => {
    const config = writeMoneyConfig(folder, { freeCreditIdr: 250 })
    const server = kept(
      await startPlatform({ config, database: "embedded", env: { RAKIT_API_KEY: apiKey } }),
    )
    expect(countOf(await storm([server]))).toEqual({ paid: 100, refused: 900 })
    expect(await ask(server)).toMatchObject({ status: 402 })
    expect(await verify(config, server.env)).toEqual({ code: 0, faults: [] })
  }, 120_000)

  it("three servers on one PostgreSQL server: the same", async () => {
    const database = kept(await openTestDatabase())
    const config = writeMoneyConfig(folder, { freeCreditIdr: 250 })
    const start = () =>
      startPlatform({ config, database: new URL(database.url), env: { RAKIT_API_KEY: apiKey } })
    const servers = (await Promise.all([start(), start(), start()])).map(kept)
    expect(countOf(await storm(servers))).toEqual({ paid: 100, refused: 900 })
    expect(await standing(database)).toEqual({ balance: "0", held: "0", open: 0, slots: 0 })
    expect(await verify(config, servers[0]!.env)).toEqual({ code: 0, faults: [] })
  }, 120_000)

  it("of chats that hold more than they use: the sum of what was paid is what left the balance", async () => {
    const database = kept(await openTestDatabase())
    const config = writeMoneyConfig(folder, { freeCreditIdr: 20 })
    const server = kept(
      await startPlatform({
        config,
        database: new URL(database.url),
        env: { RAKIT_API_KEY: apiKey },
      }),
    )
    const chat = {
      model: "svc-lyt",
      messages: [{ role: "user", content: "one two three" }],
      max_tokens: 1_000,
    }
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, () => post(server.url, "/v1/chat/completions", chat)),
    )
    const { paid, refused } = countOf(outcomes)
    expect(paid + refused).toBe(300)
    expect(refused).toBeGreaterThan(0)
    const spentMicros = outcomes.reduce((sum, { costIdr }) => sum + Math.round(costIdr * 1e6), 0)
    expect(await standing(database)).toEqual({
      balance: String(20_000_000 - spentMicros),
      held: "0",
      open: 0,
      slots: 0,
    })
    expect(await verify(config, server.env)).toEqual({ code: 0, faults: [] })
  }, 120_000)
})

const kills = Number(process.env.RAKIT_TEST_KILLS ?? 50)

describe(`kill -9 in the middle, ${kills} times`, () => {
  const leaseMs = 3_000

  /** Streams and short calls until the server is gone. */
  const load = async ({ url }: Platform): Promise<void> => {
    const stream = {
      model: "svc-omni",
      messages: [
        { role: "user", content: Array.from({ length: 60 }, (_, i) => `w${i}`).join(" ") },
      ],
      stream: true,
      max_tokens: 100,
    }
    const client = async (path: string, body: object) => {
      for (;;)
        await fetch(url + path, {
          method: "POST",
          headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        }).then((r) => r.text())
    }
    const clients = Array.from({ length: 16 }, (_, i) =>
      i % 2 === 0 ? client("/v1/chat/completions", stream) : client("/v1/rerank", rerank),
    )
    await Promise.allSettled(clients)
  }

  const settledCalls = async (database: TestDatabase): Promise<number> => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query(
      "SELECT count(*)::int AS n FROM ledger_call WHERE state = 'settled'",
    )
    await client.end()
    return (rows[0] as { n: number }).n
  }

  const until = async <A>(
    deadlineMs: number,
    look: () => Promise<A>,
    isThere: (seen: A) => boolean,
  ): Promise<A> => {
    const endMs = Date.now() + deadlineMs
    for (;;) {
      const seen = await look()
      if (isThere(seen) || Date.now() > endMs) return seen
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  it("no hold and no slot outlives its replica's lease, and the ledger is sound", async () => {
    const database = kept(await openTestDatabase())
    const config = writeMoneyConfig(folder, { freeCreditIdr: 1_000_000, leaseMs })
    const start = () =>
      startPlatform({
        config,
        database: new URL(database.url),
        dataDir: folder,
        env: { RAKIT_API_KEY: apiKey },
      })
    let before = 0
    for (let round = 0; round < kills; round++) {
      const server = await start()
      const loading = load(server)
      const after = await until(
        20_000,
        () => settledCalls(database),
        (calls) => calls >= before + 5 + (round % 7) * 5,
      )
      expect(after, "calls go on after a crash").toBeGreaterThan(before)
      before = after
      await server.stop("SIGKILL")
      await loading
    }
    const last = kept(await start())
    expect(
      await until(
        2 * leaseMs + 5_000,
        () => standing(database),
        ({ open }) => open === 0,
      ),
    ).toMatchObject({ held: "0", open: 0, slots: 0 })
    expect(await ask(last)).toMatchObject({ status: 200, costIdr: 2.5 })
    expect(await verify(config, last.env)).toEqual({ code: 0, faults: [] })
  }, 600_000)
})
