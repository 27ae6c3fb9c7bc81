import type OpenAI from "openai"
import pg from "pg"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../../testing/platform.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { writeTestConfig } from "../../../testing/test-config.ts"
import { clientOf, createBatch, manyClients } from "../testing/accounts.ts"

const tenants = 8
let database: TestDatabase
let db: pg.Client
let files: ReturnType<typeof writeTestConfig>
let server: Platform
beforeEach(async () => {
  database = await openTestDatabase()
  db = new pg.Client({ connectionString: database.url })
  await db.connect()
  files = writeTestConfig({
    plugin: "endpoint-batches",
    settings: { pollMs: 200, linesAtOnce: 16 },
    stepMs: 30,
  })
  server = await startPlatform({
    config: files.config,
    database: new URL(database.url),
    dataDir: files.folder,
  })
})
afterEach(async () => {
  await server?.close()
  await db?.end()
  await database?.close()
  files?.remove()
})

/** Completed lines by batch, in order of creation. */
const counters = async (): Promise<readonly number[]> => {
  const { rows } = await db.query("SELECT completed FROM batches_batch ORDER BY seq")
  return rows.map(({ completed }) => completed as number)
}
const until = async (holds: (counts: readonly number[]) => boolean): Promise<readonly number[]> => {
  let counts: readonly number[] = []
  await expect
    .poll(
      async () => {
        counts = await counters()
        return holds(counts)
      },
      { timeout: 60_000, interval: 20 },
    )
    .toBe(true)
  return counts
}

describe("batches of different accounts", () => {
  it("share evenly, whoever came first and whatever they brought", async () => {
    const clients = await manyClients(server.url, server.credentials, tenants)
    // the first brings three, the others one each
    for (const client of [clients[0]!, clients[0]!, ...clients])
      await createBatch(client as OpenAI, 400)
    const start = await until(
      (counts) => counts.length === tenants + 2 && counts.slice(2).every((count) => count > 0),
    )
    const now = await until(
      (counts) =>
        counts.reduce((sum, count) => sum + count, 0) >=
        start.reduce((sum, count) => sum + count, 0) + tenants * 100,
    )
    const done = now.map((count, n) => count - start[n]!)
    const byTenant = [done[0]! + done[1]! + done[2]!, ...done.slice(3)]
    const mean = byTenant.reduce((sum, count) => sum + count, 0) / tenants
    const spread = (Math.max(...byTenant) - Math.min(...byTenant)) / mean
    console.log(
      `${tenants} accounts after ${Math.round(mean)} lines each: ${byTenant.join(" ")}; spread ${Math.round(spread * 100)} %`,
    )
    // counters move in steps of one commit
    expect(spread).toBeLessThan(0.35)
  }, 120_000)

  it("don't hold a real-time call up", async () => {
    const client = clientOf(server.url, server.credentials.api_key)
    const { id } = await createBatch(client, 2_000)
    await until(([count]) => (count ?? 0) > 0)
    for (let call = 0; call < 5; call++) {
      const [before] = await counters()
      await client.embeddings.create({ model: "svc-embed", input: "now" })
      const [after] = await counters()
      // it did not wait for the lines before it
      expect(after! - before!).toBeLessThan(400)
    }
    expect((await client.batches.retrieve(id)).status).toBe("in_progress")
    const cancelled = await client.batches.cancel(id)
    expect([cancelled.status, cancelled.output_file_id]).toEqual(["cancelled", null])
  }, 120_000)
})
