import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterEach, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { runCli, type StartOptions, startPlatform } from "../platform.ts"

const plain = join(import.meta.dirname, "../../config/test.yaml")
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** config/test.yaml with faults; its paths are made absolute. */
const configWith = (chaos: object): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-chaos-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const text = readFileSync(plain, "utf8")
    .replace("../testing", join(import.meta.dirname, ".."))
    .replace("plugins:\n", `plugins:\n  chaos: ${JSON.stringify(chaos)}\n`)
  const file = join(folder, "chaos.yaml")
  writeFileSync(file, text)
  return file
}

const start = async (chaos: object, options: StartOptions = {}) => {
  const config = configWith(chaos)
  const platform = await startPlatform({
    config,
    ...options,
    env: { RAKIT_TEST_BATCH_POLL_MS: "200", ...options.env },
  })
  closers.push(platform.close)
  const client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
  const faults = async () =>
    (await (await fetch(`${platform.url}/metrics`)).text())
      .split("\n")
      .filter((line) => line.startsWith("rakit_chaos_faults_total{"))
      .join("\n")
  return { platform, client, faults, config }
}
const chat = (content: string) => ({
  model: "svc-lyt",
  messages: [{ role: "user" as const, content }],
})

it("a full disk, a crash in a stream and a slow database: clients see it, money and data stay right", async () => {
  const { platform, client, faults, config } = await start({
    faults: [
      { port: "storage", operation: "put", fault: "full", after: 1, times: 2 },
      { port: "model", operation: "run", fault: "crash", items: 2, times: 1 },
      { port: "database", operation: "run", fault: "slow", delayMs: 50, probability: 0.2 },
    ],
  })
  const stream = await client.chat.completions.create({
    ...chat("one two three four"),
    stream: true,
  })
  const pieces: string[] = []
  await expect(
    (async () => {
      for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? "")
    })(),
  ).rejects.toThrow(/Something went wrong/)
  expect(pieces.length).toBeGreaterThan(0)

  const upload = async (text: string) =>
    client.files.create({ file: await toFile(Buffer.from(text), "a.jsonl"), purpose: "batch" })
  await upload("{}\n")
  await expect(upload("{}\n")).rejects.toMatchObject({ status: 507, code: "storage_full" })

  // the second fault of the disk
  await expect(upload("{}\n")).rejects.toMatchObject({ status: 507 })
  const id = await startBatch(client, "/v1/chat/completions", {
    a: chat("a"),
    b: chat("b"),
  })
  const batch = await completedBatch(client, id)
  expect(batch.request_counts).toMatchObject({ completed: 2, failed: 0 })

  const counted = await faults()
  expect(counted).toContain('{port="storage",operation="put",fault="full"} 2')
  expect(counted).toContain('{port="model",operation="run",fault="crash"} 1')
  expect(counted).toMatch(/port="database",operation="run",fault="slow"\} \d/)
  const { stdout, stderr } = platform.output()
  expect(stdout + stderr).toContain("chaos.fault_injected")
  const check = await runCli(["fsck", config, "--json"], platform.env)
  expect([check.code, JSON.parse(check.stdout).clean]).toEqual([0, true])
}, 120_000)

it("the disk that is full while a batch writes its answers: it goes on when there is room again", async () => {
  const { client, faults } = await start({
    // the first put is the input file
    faults: [{ port: "storage", operation: "put", fault: "full", after: 1, times: 3 }],
  })
  const id = await startBatch(client, "/v1/chat/completions", { a: chat("a"), b: chat("b") })
  const batch = await completedBatch(client, id)
  expect(batch.request_counts).toMatchObject({ completed: 2, failed: 0 })
  expect(await (await client.files.content(batch.output_file_id!)).text()).toContain('"a"')
  expect(await faults()).toContain('{port="storage",operation="put",fault="full"} 3')
}, 120_000)

it("is refused in production, and where it does not come first", async () => {
  const config = configWith({})
  const env = { RAKIT_DATA: tmpdir(), NODE_ENV: "production", DATABASE_URL: "" }
  const production = await runCli(["serve", config], { ...env, PORT: "0" })
  expect([production.code, production.stderr]).toEqual([
    1,
    expect.stringContaining("NODE_ENV is production"),
  ])
}, 60_000)
