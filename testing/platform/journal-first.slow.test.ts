import { randomBytes } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { readPidFile } from "../../plugins/database-postgres/embedded/pid-file.ts"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"
import { writeMoneyConfig } from "./money-config.ts"
import { embeddedUrl, queryAt } from "./stoppable-database.ts"

/** Replies leave before the database has their settlements. */

const apiKey = `svc_live_${randomBytes(16).toString("hex")}`
const rounds = 5
const repliesInRound = 80

let folder: string
let shared: TestDatabase
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rakit-journal-first-"))
  shared = await openTestDatabase()
})
afterEach(async () => {
  await shared.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What servers that were killed have left in their journals. */
const journals = (): string =>
  readdirSync(join(folder, "settlements"))
    .map((name) => readFileSync(join(folder, "settlements", name), "utf8"))
    .join("")

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

const unpaid = (url: string, ids: readonly string[]) =>
  queryAt(
    url,
    "SELECT x AS id FROM unnest($1::uuid[]) x WHERE NOT EXISTS (SELECT FROM ledger_call c WHERE c.id = x AND c.state = 'settled' AND c.cost_micros = 2500000)",
    [ids],
  )

/** Calls without an answer when the server was killed expire with its lease. */
const untilNoneIsOpen = async (url: string) => {
  const endMs = Date.now() + 30_000
  for (;;) {
    const open = await queryAt(url, "SELECT FROM ledger_call WHERE state = 'open'")
    if (open.length === 0 || Date.now() > endMs) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

for (const [name, database, journalFirst] of [
  ["a shared database, `replyAfter: journal`", () => new URL(shared.url), true],
  ["the embedded database, by default", () => "embedded" as const, undefined],
] as const)
  test(`what was answered before a kill -9 is paid after the next start, once: ${name}`, async () => {
    const config = writeMoneyConfig(folder, {
      freeCreditIdr: 1_000_000,
      leaseMs: 3_000,
      ...(journalFirst && { journalFirst }),
    })
    const start = () =>
      startPlatform({
        config,
        database: database(),
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
      // what PostgreSQL forgets of admissions, which it does not wait for the disk with, is in the journal
      if (!journalFirst) process.kill(readPidFile(join(folder, "postgres"))!.pid, "SIGKILL")
      await server.stop("SIGKILL")
      await loading
      expect(journals()).toContain(replied.at(-1))
    }
    const last = await start()
    try {
      const url = journalFirst ? shared.url : embeddedUrl(folder)
      expect(replied.length).toBeGreaterThanOrEqual(rounds * repliesInRound)
      expect(await unpaid(url, replied)).toEqual([])
      await untilNoneIsOpen(url)
      const { code, stdout } = await runCli(["ledger", "verify", "-c", config, "--json"], last.env)
      const { faults } = JSON.parse(stdout) as { faults: readonly unknown[] }
      expect({ code, faults }).toEqual({ code: 0, faults: [] })
    } finally {
      await last.close()
    }
  }, 180_000)
