import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import pg from "pg"
import { afterEach, expect, it } from "vitest"
import { type Credentials, openTestDatabase, runCli, startPlatform } from "../platform.ts"

/** What each released version left behind: its database by pg_dump, its blobs and its secret. */
const releases = join(import.meta.dirname, "releases")
const config = join(import.meta.dirname, "../../config/test.yaml")
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const done = await client.query(text).finally(() => client.end())
  return done.rows
}

/** Balances and all transfers, as text, so that no digit is lost. */
const moneyIn = async (url: string) => ({
  accounts: await query(url, "SELECT a::text FROM ledger_account a ORDER BY 1"),
  transfers: await query(url, "SELECT t::text FROM ledger_transfer t ORDER BY 1"),
})

const load = async (release: string) => {
  const folder = join(releases, release)
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-upgrade-"))
  closers.push(() => rmSync(dataDir, { recursive: true, force: true }))
  cpSync(folder, dataDir, { recursive: true })
  const { url, remove } = await openTestDatabase()
  closers.push(remove)
  await query(url, readFileSync(join(folder, "database.sql"), "utf8"))
  // files of the fixture would have expired by now
  await query(url, "UPDATE files_file SET expires_at = now() + interval '1 day'")
  const read = (name: string) => readFileSync(join(folder, name), "utf8")
  const credentials = JSON.parse(read("credentials.json")) as Credentials
  return { dataDir, url, credentials }
}

it.each(readdirSync(releases))(
  "a deployment of %s comes up with its money, files and keys",
  async (release) => {
    const { dataDir, url, credentials } = await load(release)
    const env = { RAKIT_DATA: dataDir, DATABASE_URL: url }
    const before = await moneyIn(url)
    expect(before.transfers.length).toBeGreaterThan(3)

    expect(await runCli(["migrate", config], env)).toMatchObject({ code: 0 })
    expect(await moneyIn(url)).toEqual(before)
    const fsck = await runCli(["fsck", config, "--json"], env)
    expect(JSON.parse(fsck.stdout || fsck.stderr)).toMatchObject({ clean: true })

    const platform = await startPlatform({ database: new URL(url), dataDir })
    closers.push(platform.close)
    const client = new OpenAI({
      baseURL: `${platform.url}/v1`,
      apiKey: credentials.api_key,
      maxRetries: 0,
    })
    const names: Record<string, string> = {}
    for await (const { id, filename } of client.files.list()) names[filename] = id
    const notes = await client.files.content(names["notes.txt"]!)
    expect(await notes.text()).toBe(`kept from ${release}\n`)
    const [batch] = (await client.batches.list()).data
    const output = await client.files.content(batch!.output_file_id!)
    expect(await output.text()).toContain('"custom_id":"one"')
    // paid from the balance that it had
    await client.chat.completions.create({
      model: "svc-lyt",
      messages: [{ role: "user", content: "after the upgrade" }],
    })
    const after = await moneyIn(url)
    expect(after.transfers.length).toBeGreaterThan(before.transfers.length)
    expect(after.transfers).toEqual(expect.arrayContaining(before.transfers))
  },
  120_000,
)
