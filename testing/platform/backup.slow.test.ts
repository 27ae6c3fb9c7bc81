import { createHash } from "node:crypto"
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import pg from "pg"
import { afterEach, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { openTestDatabase } from "../postgres.ts"

const config = join(import.meta.dirname, "../../config/test.yaml")
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const emptyFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-backup-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const clientOf = ({ url }: Platform, { credentials }: Platform) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })

const text = "kept through the fire, ümlauts too\n"
/** A deployment with some of everything: a paid call, a batch, files, a webhook, a document. */
const furnish = async (platform: Platform) => {
  const client = clientOf(platform, platform)
  const chat = await client.chat.completions
    .create({ model: "svc-lyt", messages: [{ role: "user", content: "one" }] })
    .withResponse()
  const id = await startBatch(client, "/v1/chat/completions", {
    one: { model: "svc-lyt", messages: [{ role: "user", content: "one" }] },
    two: { model: "none", messages: [{ role: "user", content: "two" }] },
  })
  const batch = await completedBatch(client, id)
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "notes.txt"),
    purpose: "knowledge" as "assistants",
  })
  await client.post("/webhooks", {
    body: { url: "https://example.com/", events: ["batch.completed"] },
  })
  return {
    file: file.id,
    output: batch.output_file_id!,
    call: chat.response.headers.get("x-call-id"),
  }
}

/** Makes calls, makes files and removes them, until it is stopped. */
const keepBusy = (platform: Platform) => {
  const client = clientOf(platform, platform)
  let isBusy = true
  const again = async (work: () => Promise<unknown>) => {
    while (isBusy) await work()
  }
  const all = Promise.all([
    again(() =>
      client.chat.completions.create({
        model: "svc-lyt",
        messages: [{ role: "user", content: "more" }],
      }),
    ),
    again(async () => {
      const made = await client.files.create({
        file: await toFile(Buffer.alloc(20_000, "{}\n"), "in.jsonl"),
        purpose: "batch",
      })
      if (Math.random() < 0.5) await client.files.delete(made.id)
    }),
  ])
  // a test that fails before it stops them fails by its own error alone
  all.catch(() => {})
  return async () => {
    isBusy = false
    await all
  }
}

const expectClean = async (env: Record<string, string>) => {
  const { stdout, stderr } = await runCli(["fsck", config, "--json"], env)
  const { clean, checks } = JSON.parse(stdout || stderr)
  expect([clean, checks.flatMap((check: { findings: unknown[] }) => check.findings)]).toEqual([
    true,
    [],
  ])
}

const rowsIn = async (url: string, tables: readonly { name: string }[]) => {
  const db = new pg.Client({ connectionString: url })
  await db.connect()
  const counts: Record<string, number> = {}
  for (const { name } of tables)
    counts[name] = Number((await db.query(`SELECT count(*) FROM "${name}"`)).rows[0].count)
  await db.end()
  return counts
}

const freshDatabase = async (): Promise<string> => {
  const { url, close } = await openTestDatabase()
  closers.push(close)
  return url
}

const takeBackup = async (busy: boolean) => {
  const platform = await startPlatform({ env: { RAKIT_TEST_BATCH_POLL_MS: "200" } })
  closers.push(platform.close)
  const made = await furnish(platform)
  const stop = busy ? keepBusy(platform) : async () => {}
  const folder = join(emptyFolder(), "backup")
  const done = await runCli(["backup", "-c", config, "--out", folder], platform.env)
  await stop()
  expect(done).toMatchObject({ code: 0 })
  expect(done.stdout).toMatch(/Backed up test to .* rows of \d+ tables, [\d,]+ blobs/)
  expect(done.stdout).toContain("Keep this folder secret")
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))
  return { platform, folder, made, manifest }
}

describe("a backup", () => {
  it("taken beside a busy server comes back in an empty folder and an empty database", async () => {
    const { platform, folder, made, manifest } = await takeBackup(true)
    const before = (await (await fetch(`${platform.url}/.well-known/jwks.json`)).json()) as object
    await platform.stop()
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      const stats = statSync(join(folder, name))
      expect([name, stats.mode & 0o77]).toEqual([name, 0])
    }

    const env = { RAKIT_DATA: emptyFolder(), DATABASE_URL: await freshDatabase() }
    const done = await runCli(["restore", config, "--from", folder], env)
    expect(done).toMatchObject({ code: 0 })
    const { tables } = manifest.database as { tables: { name: string; rows: number }[] }
    expect(await rowsIn(env.DATABASE_URL, tables)).toEqual(
      Object.fromEntries(tables.map(({ name, rows }) => [name, rows])),
    )
    expect(tables.filter(({ rows }) => rows > 0).length).toBeGreaterThan(15)
    await expectClean(env)

    const restored = await startPlatform({
      database: new URL(env.DATABASE_URL),
      dataDir: env.RAKIT_DATA,
    })
    closers.push(restored.close)
    const client = clientOf(restored, platform)
    expect(await (await client.files.content(made.file)).text()).toBe(text)
    expect(await (await client.files.content(made.output)).text()).toContain('"custom_id":"one"')
    expect(await (await fetch(`${restored.url}/.well-known/jwks.json`)).json()).toEqual(before)
    // signed anew by the key that only the secret opens
    const receipt = await client.get<{ jws: string }>(`/receipts/${made.call}`)
    expect(receipt.jws.split(".")).toHaveLength(3)
    await client.chat.completions.create({
      model: "svc-lyt",
      messages: [{ role: "user", content: "new rows take new numbers" }],
    })
    await client.files.create({
      file: await toFile(Buffer.from("{}\n"), "b.jsonl"),
      purpose: "batch",
    })
    const again = await runCli(["restore", "-c", config, "--from", folder], env)
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining("The database is not empty"),
    ])
  }, 180_000)

  it("comes back in the embedded database; a damaged or newer one is refused before anything is written", async () => {
    const { folder } = await takeBackup(false)
    const refusal = async (change: (copy: string) => void) => {
      const copy = join(emptyFolder(), "copy")
      cpSync(folder, copy, { recursive: true })
      change(copy)
      const dataDir = emptyFolder()
      const done = await runCli(["restore", config, "--from", copy], { RAKIT_DATA: dataDir })
      expect([done.code, readdirSync(dataDir)]).toEqual([1, []])
      return done.stderr
    }
    const someBlob = (copy: string) => {
      const names = readdirSync(join(copy, "blobs"), { recursive: true, encoding: "utf8" })
      return join(copy, "blobs", names.find((name) => name.length > 60)!)
    }
    expect(await refusal((copy) => appendFileSync(someBlob(copy), "x"))).toMatch(/damaged.*changed/)
    const newer = await refusal((copy) => {
      const file = join(copy, "manifest.json")
      const manifest = JSON.parse(readFileSync(file, "utf8"))
      manifest.database.migrations.accounts.push("999-x")
      const text = JSON.stringify(manifest)
      const digest = createHash("sha256").update(text).digest("hex")
      writeFileSync(file, text)
      writeFileSync(`${file}.sha256`, `${digest}  manifest.json\n`)
    })
    expect(newer).toMatch(/newer rakit: the migration 999-x of accounts/)

    const other = {
      RAKIT_DATA: emptyFolder(),
      RAKIT_SECRET_KEY: "another-secret-of-thirty-two-characters",
    }
    const foreign = await runCli(["restore", config, "--from", folder], other)
    expect(foreign.stderr).toMatch(/another key than secretKey/)

    const env = { RAKIT_DATA: emptyFolder() }
    const done = await runCli(["restore", config, "--from", folder], env)
    expect(done).toMatchObject({ code: 0 })
    await expectClean(env)
  }, 180_000)
})
