import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { runCli, startPlatform } from "../platform.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"
import { newBucket, writeStorageConfig } from "./storage-config.ts"

const reason = noS3Server()
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Makes a process of node see a time that is so far ahead, wherever it looks. */
const aheadBy = (ms: number): string => {
  const code = `const Real = Date; globalThis.Date = class extends Real {
    constructor(...args) { args.length > 0 ? super(...args) : super(Real.now() + ${ms}) }
    static now() { return Real.now() + ${ms} }
  }`
  return `--import=data:text/javascript,${encodeURIComponent(code)}`
}

describe.skipIf(reason)(`a server whose clock is not that of its S3 store ${reason ?? ""}`, () => {
  let s3: S3Server
  beforeAll(async () => {
    s3 = await startS3Server()
  })
  afterAll(() => s3?.close())

  it.each([
    ["ahead", 3_600],
    ["behind", -3_600],
  ])(
    "by an hour %s, says so at its start, and stores, links and charges as ever",
    async (_, aheadS) => {
      const folder = mkdtempSync(join(tmpdir(), "rakit-skew-"))
      closers.push(() => rmSync(folder, { recursive: true, force: true }))
      const config = writeStorageConfig(folder, "storage-s3", {
        ...newBucket(s3),
        presignSeconds: 60,
      })
      const platform = await startPlatform({
        config,
        env: { NODE_OPTIONS: aheadBy(aheadS * 1_000), RAKIT_TEST_BATCH_POLL_MS: "200" },
      })
      closers.push(platform.close)
      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: platform.credentials.api_key,
        maxRetries: 0,
      })
      const { stdout, stderr } = platform.output()
      const said = (stdout + stderr).split("\n").filter((line) => line.includes("clock_skew"))
      expect(said).toHaveLength(1)
      const { level, msg, ahead_by_s } = JSON.parse(said[0]!) as Record<string, string | number>
      expect([level, msg]).toEqual(["warn", expect.stringContaining("set both by NTP")])
      expect(Math.abs(Number(ahead_by_s) - aheadS)).toBeLessThan(30)
      expect((await fetch(`${platform.url}/readyz`)).status).toBe(200)

      // in parts, and read by a link that the store checks against its own clock
      const text = "{}\n".repeat(6 * 2 ** 20)
      const { id, created_at } = await client.files.create({
        file: await toFile(Buffer.from(text), "a.jsonl"),
        purpose: "batch",
      })
      expect(Math.abs(created_at - Date.now() / 1_000 - aheadS)).toBeLessThan(60)
      const reply = await client.files.content(id)
      expect(new URL(reply.url).origin).toBe(s3.endpoint)
      expect((await reply.text()) === text).toBe(true)
      const line = { model: "svc-lyt", messages: [{ role: "user", content: "one" }] }
      const batch = await startBatch(client, "/v1/chat/completions", { a: line, b: line })
      expect((await completedBatch(client, batch)).request_counts).toEqual({
        ...{ total: 2, completed: 2, failed: 0 },
      })
      await platform.stop()
      // by the right clock
      const { NODE_OPTIONS: _options, ...env } = platform.env
      const { code, stdout: found } = await runCli(["fsck", config, "--json"], env)
      expect([code, JSON.parse(found).clean]).toEqual([0, true])
    },
    120_000,
  )
})
