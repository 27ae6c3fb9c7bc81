import { randomBytes } from "node:crypto"
import OpenAI from "openai"
import pg from "pg"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { type Platform, runCli, startPlatform } from "../../../testing/platform.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { writeTestConfig } from "../../../testing/test-config.ts"

/** Whole servers, killed again and again while they ingest files. */

const kills = Number(process.env.RAKIT_TEST_KILLS ?? 20)
const files = Math.max(4, Math.ceil(kills / 2))
/** Every other file is a long one, which a job of the short ones reads and hands over. */
const linesOf = (file: number): number => (file % 2 === 0 ? 8_000 : 12_000)
const tokenMicros = 1_500n
const apiKey = `svc_live_${randomBytes(16).toString("hex")}`

let database: TestDatabase
let db: pg.Client
let written: ReturnType<typeof writeTestConfig>
const servers = new Set<Platform>()
beforeAll(async () => {
  database = await openTestDatabase()
  db = new pg.Client({ connectionString: database.url })
  await db.connect()
  written = writeTestConfig({
    plugin: "endpoint-retrieval",
    settings: { leaseMs: 2_000 },
    stepMs: 10,
  })
})
afterAll(async () => {
  for (const server of servers) await server.close()
  await db?.end()
  await database?.close()
  written?.remove()
})

const start = async (): Promise<Platform> => {
  const server = await startPlatform({
    config: written.config,
    database: new URL(database.url),
    dataDir: written.folder,
    env: { RAKIT_API_KEY: apiKey },
  })
  servers.add(server)
  return server
}
const clientOf = ({ url }: Platform) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 2 })
const textOf = (file: number): string =>
  Array.from({ length: linesOf(file) }, (_, n) => `file ${file} has line ${n}.`).join("\n")
const upload = (server: Platform, name: string, text: string) =>
  clientOf(server).files.create({
    file: new File([text], name),
    purpose: "knowledge" as never,
  })

interface Seen {
  readonly unfinished: number
  /** Grows with each commit of a run; a run that starts over loses some of it. */
  readonly done: number
}
const observe = async (): Promise<Seen> => {
  const { rows } = await db.query(
    `SELECT count(*) FILTER (WHERE state IN ('waiting', 'extracting', 'embedding'))::int AS unfinished,
       coalesce(sum(chunks + embedded), 0)::int AS done FROM retrieval_document`,
  )
  return rows[0] as Seen
}
const until = (holds: (seen: Seen) => boolean): Promise<Seen> =>
  vi.waitFor(
    async () => {
      const seen = await observe()
      expect(seen).toSatisfy(holds)
      return seen
    },
    { timeout: 120_000, interval: 10 },
  )
const money = async () => {
  const { rows } = await db.query(
    "SELECT balance_micros::text AS balance, held_micros::text AS held FROM ledger_account WHERE account_id NOT LIKE '@%'",
  )
  return rows[0] as { balance: string; held: string }
}

/** Each chunk is what the text has in its place, and has a vector; no character is in none. */
const expectWholeIndex = async (id: string, text: string) => {
  const { rows } = await db.query(
    `SELECT c.idx, c.start_at, c.end_at, c.text, v.idx IS NOT NULL AS embedded
     FROM retrieval_document d JOIN retrieval_chunk c ON c.document_no = d.no
     LEFT JOIN retrieval_vector v ON v.document_no = d.no AND v.idx = c.idx AND v.space = d.space
     WHERE d.file_id = $1 ORDER BY c.idx`,
    [id],
  )
  const characters = Array.from(text)
  let to = 0
  for (const [at, chunk] of rows.entries()) {
    expect([chunk.idx, chunk.embedded, chunk.start_at <= to]).toEqual([at, true, true])
    expect(chunk.text).toBe(characters.slice(chunk.start_at, chunk.end_at).join(""))
    to = chunk.end_at
  }
  expect(to).toBe(characters.length)
}

it(`kill -9, ${kills} times in the ingest of ${files} files: each is whole, and paid once`, async () => {
  let server = await start()
  const before = BigInt((await money()).balance)
  const texts = new Map<string, string>()
  for (let n = 0; n < files; n++)
    texts.set((await upload(server, `${n}.txt`, textOf(n))).id, textOf(n))
  const broken = await upload(server, "broken.pdf", "%PDF-1.7 and nothing else")
  const gone = await upload(server, "gone.txt", textOf(-1))
  let seen = await observe()
  let atWork = 0
  for (let kill = 0; kill < kills; kill++) {
    const { done } = seen
    seen = await until((now) => now.unfinished === 0 || now.done !== done)
    if (seen.unfinished > 0) atWork++
    if (kill === Math.floor(kills / 2)) await clientOf(server).files.delete(gone.id)
    // anywhere between two commits
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 300))
    await server.stop("SIGKILL")
    servers.delete(server)
    server = await start()
  }
  await until(({ unfinished }) => unfinished === 0)
  const client = clientOf(server)
  let tokens = 0n
  for (const [id, text] of texts) {
    const file = (await client.files.retrieve(id)) as OpenAI.FileObject & {
      readonly progress: { readonly tokens: number }
    }
    expect(file).toMatchObject({ status: "processed" })
    tokens += BigInt(file.progress.tokens)
    await expectWholeIndex(id, text)
  }
  expect(await client.files.retrieve(broken.id)).toMatchObject({
    status: "failed",
    progress: { code: "broken" },
  })
  await expect(client.files.retrieve(gone.id)).rejects.toMatchObject({ status: 404 })

  const { rows } = await db.query(
    `SELECT parent_id, count(*) FILTER (WHERE state = 'settled' AND cost_micros > 0)::int AS paid, sum(cost_micros)::text AS cost
     FROM ledger_call WHERE parent_id IS NOT NULL GROUP BY parent_id`,
  )
  for (const id of texts.keys())
    expect(rows.find(({ parent_id }) => parent_id === id)).toMatchObject({ paid: 1 })
  expect(rows.find(({ parent_id }) => parent_id === gone.id)?.paid ?? 0).toBeLessThanOrEqual(1)
  const paid = rows.reduce((sum, { cost }) => sum + BigInt(cost), 0n)
  expect(paid).toBeGreaterThanOrEqual(tokens * tokenMicros)
  expect((await money()).balance).toBe(String(before - paid))
  await expect.poll(async () => (await money()).held, { timeout: 20_000, interval: 200 }).toBe("0")
  console.log(`${kills} kills, ${atWork} of them with files at work`)

  const ledger = await runCli(["ledger", "verify", "-c", written.config, "--json"], server.env)
  expect([ledger.code, JSON.parse(ledger.stdout)]).toMatchObject([0, { faults: [] }])
  const fsck = await runCli(["fsck", written.config, "--json"], server.env)
  expect([fsck.code, JSON.parse(fsck.stdout)]).toMatchObject([0, { clean: true }])
  await expect
    .poll(
      async () =>
        (
          await db.query(
            "SELECT FROM retrieval_chunk c WHERE NOT EXISTS (SELECT FROM retrieval_document d WHERE d.no = c.document_no AND d.state = 'ready')",
          )
        ).rowCount,
      { timeout: 30_000 },
    )
    .toBe(0)
}, 1_200_000)
