import { once } from "node:events"
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { cliCommand, type Platform, runCli, startPlatform } from "../platform.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"
import { newBucket, writeStorageConfig } from "./storage-config.ts"

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-storage-copy-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const clientOf = ({ url }: Platform, { credentials }: Platform) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })

const objectsIn = (folder: string): number =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
        (entry) => entry.isFile() && /[!~]$/.test(entry.name),
      ).length
    : 0

const line = (n: number) =>
  `${JSON.stringify({ custom_id: String(n), method: "POST", url: "/v1/chat/completions", body: {} })}\n`

/** Files of all sizes, one of several parts, and the results of a batch. */
const fill = async (client: OpenAI) => {
  const texts = new Map<string, string>()
  const upload = async (text: string) => {
    const made = await client.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    })
    texts.set(made.id, text)
  }
  await upload(line(0).repeat(220_000))
  for (let n = 0; n < 150; n++) await upload(line(n).repeat(1 + (n % 9) * 30))
  const id = await startBatch(client, "/v1/chat/completions", {
    one: { model: "svc-lyt", messages: [{ role: "user", content: "one" }] },
  })
  return { texts, output: (await completedBatch(client, id)).output_file_id! }
}

const expectAll = async (client: OpenAI, { texts, output }: Awaited<ReturnType<typeof fill>>) => {
  for (const [id, text] of texts)
    expect((await (await client.files.content(id)).text()) === text, id).toBe(true)
  expect(await (await client.files.content(output)).text()).toContain('"custom_id":"one"')
}

const expectClean = async (config: string, env: Readonly<Record<string, string>>) => {
  const { stdout, stderr } = await runCli(["fsck", config, "--json"], env)
  const { clean, checks } = JSON.parse(stdout || stderr)
  expect([clean, checks.flatMap((check: { findings: unknown[] }) => check.findings)]).toEqual([
    true,
    [],
  ])
}

describe.skipIf(noS3Server() !== undefined)("rakit storage copy", () => {
  let server: S3Server
  beforeAll(async () => {
    server = await startS3Server()
  })
  afterAll(() => server.close())

  /** Copies, is killed when some blobs are there, and ends when it is run again. */
  const copyKilled = async (
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    there: () => number,
    all: number,
  ) => {
    const child = cliCommand(["storage", "copy", ...args, "--parallel", "2"], env)
    const ended = once(child, "exit")
    await vi.waitUntil(() => there() >= 20, { timeout: 60_000, interval: 5 })
    child.kill("SIGKILL")
    expect(await ended).toEqual([null, "SIGKILL"])
    expect(there()).toBeLessThan(all)
    const done = await runCli(["storage", "copy", ...args], env)
    expect(done).toMatchObject({ code: 0 })
    const [, copied, same] = /Copied (\d+) blobs .*; (\d+) were there/.exec(done.stdout) ?? []
    expect(Number(same)).toBeGreaterThanOrEqual(18)
    expect(Number(copied) + Number(same)).toBe(all)
    expect(done.stdout).toContain("have the same length and digest")
  }

  it("brings a deployment from disk to S3 and back, killed in the middle of both, beside its server", async () => {
    const folder = newFolder()
    const bucket = newBucket(server)
    const [disk, s3, back] = [
      writeStorageConfig(folder, "storage-disk"),
      writeStorageConfig(folder, "storage-s3", bucket),
      writeStorageConfig(folder, "storage-disk", { folder: "blobs-again" }),
    ]
    const first = await startPlatform({
      config: disk,
      env: { RAKIT_TEST_BATCH_POLL_MS: "200" },
    })
    closers.push(first.close)
    const made = await fill(clientOf(first, first))
    const all = objectsIn(join(first.env.RAKIT_DATA!, "blobs"))
    await copyKilled(
      [disk, s3],
      first.env,
      () => objectsIn(join(server.folder, bucket.bucket)),
      all,
    )

    // what came meanwhile
    const late = await clientOf(first, first).files.create({
      file: await toFile(Buffer.from(line(1)), "late.jsonl"),
      purpose: "batch",
    })
    made.texts.set(late.id, line(1))
    await first.stop()
    const rest = await runCli(["storage", "copy", disk, s3, "--json"], first.env)
    expect(JSON.parse(rest.stdout)).toMatchObject({
      ...{ object: "rakit.storage_copy", failures: [], extra: 0 },
      outcomes: { copied: 1, same: all },
    })

    const database = new URL(first.env.DATABASE_URL!)
    const dataDir = first.env.RAKIT_DATA!
    rmSync(join(dataDir, "blobs"), { recursive: true })
    const second = await startPlatform({ config: s3, database, dataDir })
    closers.push(second.close)
    await expectAll(clientOf(second, first), made)
    await second.stop()
    await expectClean(s3, first.env)

    await copyKilled([s3, back], first.env, () => objectsIn(join(dataDir, "blobs-again")), all + 1)
    const third = await startPlatform({ config: back, database, dataDir })
    closers.push(third.close)
    await expectAll(clientOf(third, first), made)
    await third.stop()
    await expectClean(back, first.env)
  }, 300_000)

  it("refuses an empty source, a storage that is away and bad options", async () => {
    const folder = newFolder()
    const s3 = writeStorageConfig(folder, "storage-s3", newBucket(server))
    const disk = writeStorageConfig(folder, "storage-disk")
    const env = { RAKIT_DATA: newFolder() }
    const refusal = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runCli(["storage", "copy", ...args], env)
      expect([code, stdout]).toEqual([1, ""])
      return stderr
    }
    expect(await refusal(disk, s3)).toMatch(/has no blobs.*RAKIT_DATA/)
    expect(await refusal(disk, join(folder, "none.yaml"))).toMatch(/none.yaml/)
    expect(await refusal(disk)).toMatch(/missing required argument 'to'/)
    expect(await refusal(disk, s3, "--parallel", "65")).toMatch(/from 1 to 64/)
    const away = { ...newBucket(server), endpoint: "http://127.0.0.1:1", attempts: 1 }
    expect(await refusal(writeStorageConfig(folder, "storage-s3", away), disk)).toMatch(
      /nothing answers there/,
    )
  }, 120_000)
})
