import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"
import { writeMoneyConfig } from "./money-config.ts"

/** `replyAfter: journal`: a reply may leave before the database has its settlement. */

const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
const rounds = 5
const repliesInRound = 80

let folder: string
let database: TestDatabase
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rakit-journal-first-"))
  database = await openTestDatabase()
})
afterEach(async () => {
  await database.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Calls until the server is gone. `replied` gets the id of each call that was answered. */
const load = async ({ url }: Platform, replied: (callId: string) => void): Promise<void> => {
  const client = async () => {
    for (;;) {
      const reply = await fetch(`${url}/v1/rerank`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "svc-rerank", query: "q", documents: ["a", "b"] }),
      })
      if (reply.status === 200) replied(reply.headers.get("x-call-id")!)
      await reply.text()
    }
  }
  await Promise.allSettled(Array.from({ length: 8 }, client))
}

const query = async <Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> => {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query(sql, [...values])
  await client.end()
  return rows as Row[]
}

const unpaid = (ids: readonly string[]) =>
  query(
    "SELECT x AS id FROM unnest($1::uuid[]) x WHERE NOT EXISTS (SELECT FROM ledger_call c WHERE c.id = x AND c.state = 'settled' AND c.cost_micros = 2500000)",
    [ids],
  )

/** Calls without an answer when the server was killed expire with its lease. */
const untilNoneIsOpen = async () => {
  const endMs = Date.now() + 30_000
  for (;;) {
    const open = await query("SELECT FROM ledger_call WHERE state = 'open'")
    if (open.length === 0 || Date.now() > endMs) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

test("what was answered before a kill -9 is paid after the next start, once", async () => {
  const config = writeMoneyConfig(folder, {
    freeCreditIdr: 1_000_000,
    leaseMs: 3_000,
    journalFirst: true,
  })
  const start = () =>
    startPlatform({
      config,
      database: new URL(database.url),
      dataDir: folder,
      env: { RAKIT_API_KEY: apiKey },
    })
  const replied: string[] = []
  for (let round = 1; round <= rounds; round++) {
    const server = await start()
    let enough: () => void
    const reached = new Promise<void>((resolve) => {
      enough = resolve
    })
    const loading = load(server, (id) => {
      if (replied.push(id) === round * repliesInRound) enough()
    })
    await reached
    await server.stop("SIGKILL")
    await loading
  }
  const last = await start()
  try {
    expect(replied.length).toBeGreaterThanOrEqual(rounds * repliesInRound)
    expect(await unpaid(replied)).toEqual([])
    await untilNoneIsOpen()
    const { code, stdout } = await runCli(["ledger", "verify", "-c", config, "--json"], last.env)
    const { faults } = JSON.parse(stdout) as { faults: readonly unknown[] }
    expect({ code, faults }).toEqual({ code: 0, faults: [] })
  } finally {
    await last.close()
  }
}, 180_000)
