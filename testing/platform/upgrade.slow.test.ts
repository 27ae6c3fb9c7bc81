import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import OpenAI from "openai"
import pg from "pg"
import { afterEach, expect, it } from "vitest"
import { completedBatch } from "../batch-client.ts"
import { errorOf } from "../dashboard-client.ts"
import {
  type Credentials,
  openTestDatabase,
  type Platform,
  runCli,
  type StartOptions,
  startPlatform,
} from "../platform.ts"

/**
 * What each released version left behind (make-release.ts): its database by pg_dump, its blobs and
 * its secret. Those of `0.1.0-dev` are of commits before the first release, oldest first.
 */
const releases = join(import.meta.dirname, "releases")
const config = join(import.meta.dirname, "../../config/test.yaml")
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Fixture {
  readonly files: boolean
  readonly retrieval: boolean
  /** A key of the second account, one that it revoked, and a batch that the stop interrupted. */
  readonly key?: string
  readonly revoked?: string
  readonly begun?: string
}

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const done = await client.query(text).finally(() => client.end())
  return done.rows
}

/** Balances and all transfers, as text, so that no digit is lost. */
const moneyIn = async (url: string) => ({
  accounts: await query(
    url,
    "SELECT account_id, balance_micros::text FROM ledger_account ORDER BY 1",
  ),
  transfers: await query(url, "SELECT t::text FROM ledger_transfer t ORDER BY 1"),
  usage: await query(
    url,
    "SELECT id, cost_micros::text, usage FROM ledger_call WHERE state = 'settled' ORDER BY id",
  ),
})

/** Plugin and migration, of all that have run. */
const migrationsOf = async (url: string): Promise<readonly string[]> => {
  const tables = (await query(
    url,
    "SELECT tablename FROM pg_tables WHERE tablename LIKE '%\\_migration' ORDER BY 1",
  )) as { tablename: string }[]
  const names = await Promise.all(
    tables.map(async ({ tablename }) => {
      const rows = (await query(url, `SELECT name FROM ${tablename} ORDER BY 1`)) as {
        name: string
      }[]
      return rows.map(({ name }) => `${tablename} ${name}`)
    }),
  )
  return names.flat()
}

const dumpOf = (release: string): string =>
  gunzipSync(readFileSync(join(releases, release, "database.sql.gz"))).toString()

const load = async (release: string) => {
  const folder = join(releases, release)
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-upgrade-"))
  closers.push(() => rmSync(dataDir, { recursive: true, force: true }))
  cpSync(folder, dataDir, { recursive: true })
  const { url, remove } = await openTestDatabase()
  closers.push(remove)
  await query(url, dumpOf(release))
  const read = <A>(name: string) => JSON.parse(readFileSync(join(folder, name), "utf8")) as A
  const fixture = read<Fixture>("fixture.json")
  // the server stopped just now: else its files have expired, and batches and documents are late
  if (fixture.files)
    await query(
      url,
      `UPDATE files_file SET expires_at = now() + interval '1 day';
       UPDATE batches_batch SET expires_at = now() + interval '1 day', deadline_at = now() + interval '1 day'`,
    )
  const [documents] = await query(url, "SELECT to_regclass('retrieval_document') AS name")
  if ((documents as { name: unknown }).name)
    await query(url, "UPDATE retrieval_document SET created_at = now()")
  return { dataDir, url, credentials: read<Credentials>("credentials.json"), fixture }
}

const clientOf = ({ url }: Platform, apiKey: string) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const question = {
  model: "svc-lyt",
  messages: [{ role: "user" as const, content: "after the upgrade" }],
}

const expectClean = async (env: Readonly<Record<string, string>>) => {
  const { stdout, stderr } = await runCli(["fsck", config, "--json"], env)
  const { clean, checks } = JSON.parse(stdout || stderr)
  expect([clean, checks.flatMap((check: { findings: unknown[] }) => check.findings)]).toEqual([
    true,
    [],
  ])
}

const expectFiles = async (client: OpenAI, release: string, { retrieval }: Fixture) => {
  const names: Record<string, string> = {}
  for await (const { id, filename } of client.files.list()) names[filename] = id
  const notes = await client.files.content(names["notes.txt"]!)
  expect(await notes.text()).toBe(`kept from ${release}\n`)
  for await (const batch of client.batches.list()) {
    if (!batch.output_file_id) continue
    const output = await client.files.content(batch.output_file_id)
    expect(await output.text()).toContain('"custom_id":"one"')
  }
  if (!retrieval) return
  const found = (await client.post("/retrieval", { body: { query: `kept from ${release}` } })) as {
    readonly results: readonly { readonly file_id: string }[]
  }
  expect(found.results.map(({ file_id }) => file_id)).toContain(names["notes.txt"])
}

it("between the versions that left these are migrations", () => {
  const lists = readdirSync(releases).map((release) =>
    [...dumpOf(release).matchAll(/^INSERT INTO public.(\w+_migration VALUES \('[\w-]+')/gm)]
      .map(([, migration]) => migration)
      .join("\n"),
  )
  expect(Math.min(...lists.map((list) => list.split("\n").length))).toBeGreaterThan(9)
  expect(new Set(lists).size).toBeGreaterThan(6)
})

/** What has run in the end is the same, whatever had run before. */
let latest: readonly string[] | undefined
it.each(readdirSync(releases))(
  "a deployment of %s comes up with its money, files and keys",
  async (release) => {
    const { dataDir, url, credentials, fixture } = await load(release)
    const before = await moneyIn(url)
    expect(before.transfers.length).toBeGreaterThan(3)
    const ran = await migrationsOf(url)

    // api: what was begun waits
    const start = async (options: StartOptions) => {
      const platform = await startPlatform({ database: new URL(url), dataDir, ...options })
      closers.push(platform.close)
      return platform
    }
    const api = await start({ role: "api" })
    const now = await migrationsOf(url)
    expect(now).toEqual(expect.arrayContaining([...ran]))
    latest ??= now
    expect(now).toEqual(latest)
    expect(await moneyIn(url)).toEqual(before)
    await expectClean(api.env)

    const client = clientOf(api, credentials.api_key)
    if (fixture.files) await expectFiles(client, release, fixture)
    // paid from the balance that it had
    for (const key of [credentials.api_key, fixture.key])
      if (key) await clientOf(api, key).chat.completions.create(question)
    if (fixture.revoked)
      expect(
        await errorOf(clientOf(api, fixture.revoked).chat.completions.create(question)),
      ).toMatchObject({ status: 401 })
    const after = await moneyIn(url)
    expect(after.transfers.length).toBeGreaterThan(before.transfers.length)
    expect(after.transfers).toEqual(expect.arrayContaining(before.transfers))
    await api.stop()

    const all = await start({ env: { RAKIT_TEST_BATCH_POLL_MS: "200" } })
    if (fixture.begun) {
      const batch = await completedBatch(clientOf(all, credentials.api_key), fixture.begun)
      expect(batch.request_counts).toEqual({ total: 40, completed: 40, failed: 0 })
    }
    await all.stop()
    await expectClean(all.env)
  },
  180_000,
)

it("`rakit migrate` brings the oldest up to date as a server does", async () => {
  const [oldest] = readdirSync(releases).filter((name) => name.includes("-dev"))
  const { dataDir, url } = await load(oldest!)
  const before = await moneyIn(url)
  const env = { RAKIT_DATA: dataDir, DATABASE_URL: url }
  expect(await runCli(["migrate", config], env)).toMatchObject({ code: 0 })
  expect(await moneyIn(url)).toEqual(before)
  expect(existsSync(join(dataDir, "credentials.json"))).toBe(true)
  await expectClean(env)
}, 120_000)
