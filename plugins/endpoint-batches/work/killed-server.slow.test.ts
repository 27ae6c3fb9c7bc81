import { randomBytes } from "node:crypto"
import pg from "pg"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { type Platform, runCli, startPlatform } from "../../../testing/platform.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { writeTestConfig } from "../../../testing/test-config.ts"
import { clientOf, createBatch } from "../testing/accounts.ts"

/** Whole servers, killed again and again while they work one batch through. */

const kills = Number(process.env.RAKIT_TEST_KILLS ?? 50)
const lines = kills * 40
/** Two tokens at half the price of Rp1,500 a million. */
const lineMicros = 1_500n
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`

let database: TestDatabase
let db: pg.Client
let files: ReturnType<typeof writeTestConfig>
const servers = new Set<Platform>()
beforeAll(async () => {
  database = await openTestDatabase()
  db = new pg.Client({ connectionString: database.url })
  await db.connect()
  files = writeTestConfig({
    plugin: "endpoint-batches",
    settings: { pollMs: 100, leaseMs: 600, linesAtOnce: 8 },
    stepMs: 60,
  })
})
afterAll(async () => {
  for (const server of servers) await server.close()
  await db?.end()
  await database?.close()
  files?.remove()
})

const start = async (): Promise<Platform> => {
  const server = await startPlatform({
    config: files.config,
    database: new URL(database.url),
    dataDir: files.folder,
    env: { RAKIT_API_KEY: apiKey },
  })
  servers.add(server)
  return server
}

interface BatchState {
  readonly status: string
  readonly completed: number
  readonly epoch: number
  readonly parts: number
}
const observe = async (): Promise<BatchState> => {
  const { rows } = await db.query(
    "SELECT status, completed, epoch, (SELECT count(*)::int FROM batches_part) AS parts FROM batches_batch",
  )
  return rows[0] as BatchState
}
const until = (holds: (seen: BatchState) => boolean): Promise<BatchState> =>
  vi.waitFor(
    async () => {
      const seen = await observe()
      expect(seen).toSatisfy(holds)
      return seen
    },
    { timeout: 60_000, interval: 10 },
  )
const money = async () => {
  const { rows } = await db.query(
    "SELECT balance_micros::text AS balance, held_micros::text AS held FROM ledger_account WHERE account_id NOT LIKE '@%'",
  )
  return rows[0] as { balance: string; held: string }
}

it(`kill -9, ${kills} times in a batch of ${lines} lines: complete, in order, each line once, paid once`, async () => {
  const first = await start()
  const before = BigInt((await money()).balance)
  await createBatch(clientOf(first.url, apiKey), lines)
  let server = first
  let seen = { status: "", completed: 0, epoch: 0, parts: 0 } satisfies BatchState as BatchState
  for (let kill = 0; kill < kills; kill++) {
    const wanted = seen.completed + Math.floor(Math.random() * 30)
    const now = await until(
      ({ completed, status, epoch }) =>
        status === "completed" || (epoch > kill && completed >= wanted),
    )
    expect(now.completed, "counters never go back").toBeGreaterThanOrEqual(seen.completed)
    seen = now
    // anywhere between two commits
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 120))
    await server.stop("SIGKILL")
    servers.delete(server)
    server = await start()
  }
  const atLastKill = seen.completed
  expect(await until(({ status }) => status === "completed")).toMatchObject({ completed: lines })
  const client = clientOf(server.url, apiKey)
  const [batch] = (await client.batches.list()).data
  expect(batch).toMatchObject({
    status: "completed",
    request_counts: { total: lines, completed: lines, failed: 0 },
    error_file_id: null,
  })
  const output = (await (await client.files.content(batch!.output_file_id!)).text())
    .trimEnd()
    .split("\n")
  expect(output.map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)).toEqual(
    Array.from({ length: lines }, (_, n) => `line-${n}`),
  )

  expect(await money()).toMatchObject({ balance: String(before - BigInt(lines) * lineMicros) })
  await expect.poll(async () => (await money()).held, { timeout: 20_000, interval: 200 }).toBe("0")
  const { rows } = await db.query(
    "SELECT state, count(*)::int AS calls, count(DISTINCT request_id)::int AS requests FROM ledger_call WHERE parent_id IS NOT NULL GROUP BY state",
  )
  const settled = rows.find(({ state }) => state === "settled") as {
    calls: number
    requests: number
  }
  expect(settled).toMatchObject({ calls: lines, requests: lines })
  const repeated = rows.reduce((sum, { calls }) => sum + (calls as number), 0) - lines
  console.log(
    `${kills} kills, the last at line ${atLastKill}; ${seen.parts} parts were stored; ${repeated} lines ran again, unpaid`,
  )

  const ledger = await runCli(["ledger", "verify", "-c", files.config, "--json"], server.env)
  expect([ledger.code, JSON.parse(ledger.stdout)]).toMatchObject([0, { faults: [] }])
  const fsck = await runCli(["fsck", files.config, "--json"], server.env)
  expect([fsck.code, JSON.parse(fsck.stdout)]).toMatchObject([0, { clean: true }])
  for (const table of ["batches_line", "batches_part"])
    expect([table, (await db.query(`SELECT * FROM ${table}`)).rowCount]).toEqual([table, 0])
}, 2_400_000)
