import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI from "openai"
import pg from "pg"
import { afterEach, expect, it, vi } from "vitest"
import { parse, stringify } from "yaml"
import { runCli, startPlatform } from "../platform.ts"
import { openTestDatabase } from "../postgres.ts"

/**
 * The money of pictures that never come: whole servers with the real engine, on a model of random
 * weights that is slow because of its many steps and pixels.
 */
const root = fileURLToPath(new URL("../..", import.meta.url))
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const writeConfig = (server: object) => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-cancelled-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const shared = parse(readFileSync(join(root, "config/test.yaml"), "utf8"))
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const model = {
    id: "svc-iris",
    task: "image",
    limits: { contextTokens: 77 },
    modalities: ["text", "image"],
    capabilities: ["image_generation", "image_editing"],
    price: { image: 750 },
    backend: "onnx",
    // one at a time, and nobody waits: a slot that isn't free is a 429
    options: { precision: "fp32", slots: 1, queueWaitMs: 0 },
    sources: [{ url: `file:${root}/plugins/backend-onnx/fixtures/diffusion/sd/` }],
  }
  const file = join(folder, "rakit.yaml")
  const config = {
    ...shared,
    server: { ...shared.server, ...server },
    plugins: { ...plugins, "backend-onnx": { threads: 1 } },
    models: [model],
  }
  config.plugins.accounts.defaultLimits.concurrency = 1
  writeFileSync(file, stringify(config))
  return file
}

const open = async (server: object = {}) => {
  const database = await openTestDatabase()
  closers.push(() => database.close())
  const config = writeConfig(server)
  const platform = await startPlatform({ config, database: new URL(database.url) })
  closers.push(() => platform.close())
  const { api_key: apiKey } = platform.credentials
  const client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
  const rows = new pg.Client({ connectionString: database.url })
  await rows.connect()
  closers.push(() => rows.end())
  const one = async (query: string) => (await rows.query(query)).rows[0]
  const standing = () =>
    one(
      `SELECT held_micros::text AS held, balance_micros::text AS balance,
         (SELECT coalesce(sum(open_calls), 0)::int FROM ledger_key) AS slots
       FROM ledger_account WHERE account_id NOT LIKE '@%'`,
    )
  const lastCall = () =>
    one(
      `SELECT state, cost_micros::int AS cost, http_status AS status
       FROM ledger_call ORDER BY admitted_at DESC LIMIT 1`,
    )
  const isSound = async () => {
    const check = async (...args: string[]) => (await runCli(args, platform.env)).code
    return [await check("ledger", "verify", "-c", config), await check("fsck", config, "--json")]
  }
  return { client, platform, standing, lastCall, isSound }
}
type Opened = Awaited<ReturnType<typeof open>>

const short = {
  model: "svc-iris",
  prompt: "an apple",
  size: "64x64" as "auto",
  ...({ num_steps: 1 } as object),
}
/** Some seconds of work on one core. */
const long = { ...short, size: "256x256" as "auto", ...({ num_steps: 50 } as object) }

/** Nothing is held or charged any more, and the one slot is free for the next picture. */
const expectNothingCharged = async (
  { client, standing, lastCall, isSound }: Opened,
  before: object,
) => {
  await vi.waitFor(async () => expect(await standing()).toEqual(before), { timeout: 10_000 })
  expect((await lastCall()).cost).toBe(0)
  expect((await client.images.generate(short)).data).toHaveLength(1)
  const paid = BigInt((before as { balance: string }).balance) - 750_000_000n
  await vi.waitFor(async () =>
    expect(await standing()).toEqual({ held: "0", slots: 0, balance: String(paid) }),
  )
  expect(await isSound()).toEqual([0, 0])
}

it("a stream that is left after its first preview costs nothing", async () => {
  const opened = await open()
  const { client, standing } = opened
  const before = await standing()
  const stream = await client.images.generate({ ...long, stream: true, partial_images: 3 })
  for await (const { type } of stream) {
    expect(type).toBe("image_generation.partial_image")
    expect(await standing()).toMatchObject({ held: "750000000", slots: 1 })
    break
  }
  await expectNothingCharged(opened, before)
}, 120_000)

it("a request that is left in the middle costs nothing", async () => {
  const opened = await open()
  const { client, standing } = opened
  const before = await standing()
  const leaving = new AbortController()
  const left = client.images.generate(long, { signal: leaving.signal })
  const failed = expect(left).rejects.toThrow(OpenAI.APIUserAbortError)
  await vi.waitFor(async () =>
    expect(await standing()).toMatchObject({ held: "750000000", slots: 1 }),
  )
  leaving.abort()
  await failed
  await expectNothingCharged(opened, before)
}, 120_000)

it("a picture that takes too long is a 504 and costs nothing, whole or streamed", async () => {
  const opened = await open({ callTimeoutMs: 1_000 })
  const { client, standing, lastCall } = opened
  const before = await standing()
  const slow = { status: 504, code: "backend_timeout" }
  await expect(client.images.generate(long)).rejects.toMatchObject(slow)
  await vi.waitFor(async () => expect(await standing()).toEqual(before))
  expect(await lastCall()).toMatchObject({ state: "voided", status: 504 })
  const stream = await client.images.generate({ ...long, stream: true })
  const read = async () => {
    for await (const { type } of stream) expect(type).toBe("image_generation.partial_image")
  }
  await expect(read()).rejects.toMatchObject({ code: "backend_timeout" })
  await expectNothingCharged(opened, before)
}, 120_000)
