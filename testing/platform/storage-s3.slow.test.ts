import { mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import pg from "pg"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { addAccount, askDashboard } from "../dashboard-client.ts"
import { type Platform, runCli, type StartOptions, startPlatform } from "../platform.ts"
import { openTestDatabase } from "../postgres.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"
import { mountSmallDisk } from "../small-disk.ts"
import { newBucket, writeStorageConfig } from "./storage-config.ts"

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const smallDisk = mountSmallDisk(5)

const clientOf = ({ url }: Platform, apiKey: string) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const text = `${"{}\n".repeat(4_000)}ümlauts\n`
const upload = async (client: OpenAI, body = text, name = "näme.jsonl") =>
  client.files.create({ file: await toFile(Buffer.from(body), name), purpose: "batch" })
const question = {
  model: "svc-lyt",
  messages: [{ role: "user" as const, content: "one" }],
}

const expectClean = async (config: string, { env }: Platform) => {
  const { stdout, stderr } = await runCli(["fsck", config, "--json"], env)
  const { clean, checks } = JSON.parse(stdout || stderr)
  expect([clean, checks.flatMap((check: { findings: unknown[] }) => check.findings)]).toEqual([
    true,
    [],
  ])
}

const query = async <Row extends object>({ env }: Platform, sql: string): Promise<Row> => {
  const db = new pg.Client({ connectionString: env.DATABASE_URL })
  await db.connect()
  try {
    return (await db.query(sql)).rows[0] as Row
  } finally {
    await db.end()
  }
}

describe.skipIf(noS3Server() !== undefined)("a deployment on S3", () => {
  let server: S3Server
  beforeAll(async () => {
    server = await startS3Server()
  })
  afterAll(() => server.close())

  const open = async (more: Record<string, unknown> = {}, options: StartOptions = {}) => {
    const folder = mkdtempSync(join(tmpdir(), "rakit-s3-deployment-"))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const bucket = newBucket(server)
    const config = writeStorageConfig(folder, "storage-s3", { ...bucket, ...more })
    const start = async (again: StartOptions = {}) => {
      const platform = await startPlatform({
        config,
        env: { RAKIT_TEST_BATCH_POLL_MS: "200" },
        ...options,
        ...again,
      })
      closers.push(platform.close)
      return platform
    }
    return { platform: await start(), start, config, bucket }
  }

  it("hands out signed links that the official client follows, and checks the account before", async () => {
    const { platform, config } = await open({ presignSeconds: 60 })
    const { api_key, email, password } = platform.credentials
    const client = clientOf(platform, api_key)
    const { id } = await upload(client)
    expect(await (await client.files.content(id)).text()).toBe(text)
    const part = await client.files.content(id, { headers: { range: "bytes=0-2" } })
    expect([part.status, await part.text(), new URL(part.url).origin]).toEqual([
      206,
      "{}\n",
      server.endpoint,
    ])

    const path = `${platform.url}/v1/files/${id}/content`
    const raw = (headers: Record<string, string> = {}, method = "GET", key = api_key) =>
      fetch(path, {
        method,
        redirect: "manual",
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
    const sent = await raw()
    const link = sent.headers.get("location")!
    expect([sent.status, new URL(link).origin]).toEqual([302, server.endpoint])
    expect(new URL(link).searchParams.get("X-Amz-Expires")).toBe("60")
    const whole = await fetch(link)
    expect(await whole.text()).toBe(text)
    expect(whole.headers.get("content-type")).toBe("application/jsonl")
    expect(whole.headers.get("content-disposition")).toBe(
      `attachment; filename="n_me.jsonl"; filename*=UTF-8''n%C3%A4me.jsonl`,
    )
    // what is signed can't be changed
    const other = await upload(client, "other\n")
    const bent = link.replace(
      /[0-9a-f-]{36}!|[0-9a-f-]{36}%21/,
      "00000000-0000-7000-8000-000000000000!",
    )
    expect(bent).not.toBe(link)
    expect((await fetch(bent)).status).toBe(403)
    expect((await fetch(link, { method: "HEAD" })).status).toBe(403)

    const head = await raw({}, "HEAD")
    expect([head.status, head.headers.get("content-length")]).toEqual([
      200,
      String(Buffer.byteLength(text)),
    ])
    const etag = head.headers.get("etag")!
    expect((await raw({ "if-none-match": etag })).status).toBe(304)
    expect((await raw({ range: "bytes=0-2", "if-range": etag })).status).toBe(206)
    expect((await raw({ range: "bytes=999999-" })).status).toBe(416)
    expect((await raw({ origin: platform.url })).status).toBe(200)

    const { token } = await askDashboard(platform.url, "/dashboard/login", "", { email, password })
    const stranger = await addAccount(platform.url, token)
    const refused = await raw({}, "GET", stranger.key)
    expect([refused.status, refused.headers.get("location")]).toEqual([404, null])
    expect((await raw({}, "GET", "wrong")).status).toBe(401)
    await client.files.delete(other.id)
    expect((await fetch(`${platform.url}/v1/files/${other.id}/content`)).status).toBe(401)
    await expect(client.files.content(other.id)).rejects.toMatchObject({ status: 404 })
    await expectClean(config, platform)
  }, 120_000)

  it("keeps files, results and documents when the server and the store are killed", async () => {
    const { platform, start, config } = await open()
    const key = platform.credentials.api_key
    const client = clientOf(platform, key)
    const { id } = await upload(client)
    const document = await client.files.create({
      file: await toFile(Buffer.from("the harbour of Makassar lies in the west"), "a.txt"),
      purpose: "knowledge" as "assistants",
    })
    const batch = await startBatch(
      client,
      "/v1/chat/completions",
      Object.fromEntries(
        Array.from({ length: 60 }, (_, n) => [`line-${n}`, { ...question, model: "svc-omni" }]),
      ),
    )
    await vi.waitUntil(
      async () => ((await client.batches.retrieve(batch)).request_counts?.completed ?? 0) > 5,
      { timeout: 60_000, interval: 20 },
    )
    await platform.stop("SIGKILL")
    await server.kill()
    await server.restart()

    const again = await start({
      database: new URL(platform.env.DATABASE_URL!),
      dataDir: platform.env.RAKIT_DATA!,
    })
    const later = clientOf(again, key)
    expect(await (await later.files.content(id)).text()).toBe(text)
    const done = await completedBatch(later, batch)
    expect(done.request_counts).toMatchObject({ total: 60, completed: 60, failed: 0 })
    const results = (await (await later.files.content(done.output_file_id!)).text()).trim()
    const ids = results.split("\n").map((line) => JSON.parse(line).custom_id)
    expect([ids.length, new Set(ids).size]).toEqual([60, 60])
    await later.files.waitForProcessing(document.id, { pollInterval: 50 })
    const found = (await later.post("/retrieval", { body: { query: "harbour of Makassar" } })) as {
      readonly results: readonly { readonly file_id: string }[]
    }
    expect(found.results.map(({ file_id }) => file_id)).toContain(document.id)
    await again.stop()
    await expectClean(config, again)
  }, 180_000)

  it("names a bucket that vanishes while it runs, loses nothing and charges nothing twice", async () => {
    const { platform, config, bucket } = await open({ attempts: 2 })
    const client = clientOf(platform, platform.credentials.api_key)
    const { id } = await upload(client)
    const storage = async () => {
      const reply = await fetch(`${platform.url}/readyz`)
      const { checks } = (await reply.json()) as {
        readonly checks: readonly { name: string; ok: boolean; reason?: string }[]
      }
      return { status: reply.status, ...checks.find(({ name }) => name === "storage")! }
    }
    expect(await storage()).toMatchObject({ status: 200, ok: true })
    const slow = { ...question, model: "svc-omni" }
    const lines = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`line-${n}`, slow]))
    const begun = await startBatch(client, "/v1/chat/completions", lines)
    await vi.waitUntil(
      async () => ((await client.batches.retrieve(begun)).request_counts?.completed ?? 0) > 5,
      { timeout: 60_000, interval: 20 },
    )
    const [there, away] = [join(server.folder, bucket.bucket), join(server.folder, "away")]
    renameSync(there, away)
    await vi.waitFor(
      async () =>
        expect(await storage()).toMatchObject({
          ...{ status: 503, ok: false },
          reason: expect.stringContaining("there is no such bucket"),
        }),
      { timeout: 20_000 },
    )
    const outage = { status: 503, code: "storage_unavailable" }
    await expect(upload(client)).rejects.toMatchObject(outage)
    await expect(client.files.content(id)).rejects.toMatchObject(outage)
    // what needs no blob goes on, and is paid once
    const answer = await client.chat.completions.create(question)
    expect(answer.choices).toHaveLength(1)
    renameSync(away, there)
    await vi.waitFor(async () => expect(await storage()).toMatchObject({ status: 200, ok: true }), {
      timeout: 20_000,
    })
    expect(await (await client.files.content(id)).text()).toBe(text)
    const batch = await completedBatch(client, begun)
    expect(batch.request_counts).toEqual({ total: 30, completed: 30, failed: 0 })
    const results = (await (await client.files.content(batch.output_file_id!)).text()).trim()
    expect(results.split("\n")).toHaveLength(30)
    expect(
      await query(
        platform,
        "SELECT count(*)::int AS calls FROM ledger_call WHERE state = 'settled' AND cost_micros > 0",
      ),
    ).toEqual({ calls: 31 })
    await platform.stop()
    await expectClean(config, platform)
  }, 180_000)

  it("says which setting is wrong when it does not start", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rakit-s3-wrong-"))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const { url, close } = await openTestDatabase()
    closers.push(close)
    const bucket = newBucket(server)
    const refusal = async (wrong: Record<string, unknown>) => {
      const config = writeStorageConfig(folder, "storage-s3", { ...bucket, attempts: 1, ...wrong })
      const env = { RAKIT_DATA: folder, DATABASE_URL: url, PORT: "0" }
      const { code, stderr, stdout } = await runCli(["serve", config], env)
      expect(code).toBe(1)
      expect(`${stdout}${stderr}`).not.toContain(bucket.secretAccessKey)
      return stderr
    }
    const said = await Promise.all([
      refusal({ endpoint: "http://127.0.0.1:1" }),
      refusal({ region: "eu-north-7" }),
      refusal({ bucket: "elsewhere" }),
      refusal({ accessKeyId: "nobody" }),
      refusal({ secretAccessKey: "wrong" }),
    ])
    expect(said.map((text) => /there is no such bucket|Correct `\w+`/.exec(text)?.[0])).toEqual([
      "Correct `endpoint`",
      "Correct `region`",
      "there is no such bucket",
      "Correct `accessKeyId`",
      "Correct `secretAccessKey`",
    ])
  }, 120_000)
})

describe.skipIf(noS3Server() !== undefined)(
  "a deployment on an S3 store whose disk is full",
  () => {
    it("refuses uploads with 507, serves and deletes what is there, and then has room again", async ({
      skip,
    }) => {
      const disk = smallDisk
      if (disk === undefined) return skip()
      const server = await startS3Server({ folder: disk })
      closers.push(server.close)
      const folder = mkdtempSync(join(tmpdir(), "rakit-s3-full-"))
      closers.push(() => rmSync(folder, { recursive: true, force: true }))
      const config = writeStorageConfig(folder, "storage-s3", newBucket(server))
      const platform = await startPlatform({ config })
      closers.push(platform.close)
      const client = clientOf(platform, platform.credentials.api_key)
      const large = "{}\n".repeat(1_000_000)
      const kept = await upload(client, large)
      const error = await upload(client, large).then(
        () => undefined,
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ status: 507, code: "storage_full" })
      expect(await (await client.files.content(kept.id)).text()).toBe(large)
      expect((await client.chat.completions.create(question)).choices).toHaveLength(1)
      await client.files.delete(kept.id)
      // its bytes go within seconds
      await vi.waitFor(() => upload(client, large), { timeout: 30_000, interval: 200 })
      await platform.stop()
      await expectClean(config, platform)
    }, 120_000)
  },
)
