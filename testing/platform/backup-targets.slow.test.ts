import { once } from "node:events"
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import OpenAI, { toFile } from "openai"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { cliCommand, type Platform, runCli, type StartOptions, startPlatform } from "../platform.ts"
import { openTestDatabase } from "../postgres.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"
import { newBucket, writeStorageConfig } from "./storage-config.ts"

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-backup-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Where a deployment keeps its data: a config file and its environment. */
interface Place {
  readonly config: string
  readonly env: Readonly<Record<string, string>>
  readonly database: NonNullable<StartOptions["database"]>
}
type Where = readonly ["embedded" | "server", "disk" | "s3"]

const fileCount = 60
/** A paid call, a batch and its results, and many files. */
const furnish = async ({ url, credentials }: Platform) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  const id = await startBatch(client, "/v1/chat/completions", {
    one: { model: "svc-lyt", messages: [{ role: "user", content: "one" }] },
  })
  await completedBatch(client, id)
  for (let n = 0; n < fileCount; n++)
    await client.files.create({
      file: await toFile(Buffer.alloc(20_000 + n, "{}\n"), `${n}.jsonl`),
      purpose: "batch",
    })
}

const expectClean = async ({ config, env }: Place) => {
  const { stdout, stderr } = await runCli(["fsck", config, "--json"], env)
  const { clean, checks } = JSON.parse(stdout || stderr)
  expect([clean, checks.flatMap((check: { findings: unknown[] }) => check.findings)]).toEqual([
    true,
    [],
  ])
}

/** Every row and every blob of a backup, whatever their order. */
const contentOf = (folder: string) => {
  const linesOf = (file: string) =>
    gunzipSync(readFileSync(join(folder, file)))
      .toString()
      .split("\n")
      .sort()
  const { database, secret } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))
  const tables = readdirSync(join(folder, "tables")).sort()
  return {
    tables: Object.fromEntries(tables.map((name) => [name, linesOf(`tables/${name}`)])),
    blobs: linesOf("blobs.jsonl.gz"),
    sequences: database.sequences,
    migrations: database.migrations,
    secret: secret.sha256,
  }
}

const backUp = async ({ config, env }: Place): Promise<string> => {
  const folder = join(newFolder(), "backup")
  expect(await runCli(["backup", "-c", config, "--out", folder], env)).toMatchObject({ code: 0 })
  return folder
}

describe.skipIf(noS3Server() !== undefined)("a backup", () => {
  let server: S3Server
  /** A source that no test changes, on a server and a disk. */
  let source: Place
  const sourceClosers: typeof closers = []
  beforeAll(async () => {
    server = await startS3Server()
    source = await furnished(["server", "disk"])
    sourceClosers.push(...closers.splice(0))
  }, 120_000)
  afterAll(async () => {
    for (const close of sourceClosers.reverse()) await close()
    await server.close()
  })

  const emptyPlace = async ([database, storage]: Where): Promise<Place> => {
    const config =
      storage === "s3"
        ? writeStorageConfig(newFolder(), "storage-s3", newBucket(server))
        : writeStorageConfig(newFolder(), "storage-disk")
    const env = { RAKIT_DATA: newFolder(), RAKIT_TEST_BATCH_POLL_MS: "200" }
    if (database === "embedded")
      return { config, env: { ...env, DATABASE_URL: "" }, database: "embedded" }
    const { url, close } = await openTestDatabase()
    closers.push(close)
    return { config, env: { ...env, DATABASE_URL: url }, database: new URL(url) }
  }
  const serve = async ({ config, env, database }: Place) => {
    const platform = await startPlatform({ config, database, dataDir: env.RAKIT_DATA!, env })
    closers.push(platform.close)
    return platform
  }
  const furnished = async (where: Where): Promise<Place> => {
    const place = await emptyPlace(where)
    const platform = await serve(place)
    await furnish(platform)
    expect(await platform.stop()).toBe(0)
    return place
  }
  const restore = ({ config, env }: Place, folder: string) =>
    runCli(["restore", "-c", config, "--from", folder], env)

  it.each<readonly [Where, Where]>([
    [
      ["embedded", "disk"],
      ["server", "s3"],
    ],
    [
      ["server", "disk"],
      ["embedded", "s3"],
    ],
  ])(
    "of %s comes back on %s, and from there where it was, the same to the byte",
    async (from, to) => {
      const origin = from[0] === "server" ? source : await furnished(from)
      const first = await backUp(origin)
      const content = contentOf(first)
      expect(content.blobs.length).toBeGreaterThan(fileCount)
      const there = await emptyPlace(to)
      expect(await restore(there, first)).toMatchObject({ code: 0 })
      await expectClean(there)
      const second = await backUp(there)
      expect(contentOf(second)).toEqual(content)

      const back = await emptyPlace(from)
      expect(await restore(back, second)).toMatchObject({ code: 0 })
      await expectClean(back)
      expect(contentOf(await backUp(back))).toEqual(content)

      // it is a deployment again, and refuses another restore
      const platform = await serve(back)
      const key = JSON.parse(readFileSync(join(origin.env.RAKIT_DATA!, "credentials.json"), "utf8"))
      const client = new OpenAI({
        baseURL: `${platform.url}/v1`,
        apiKey: key.api_key,
        maxRetries: 0,
      })
      const [newest] = (await client.files.list()).data
      expect((await (await client.files.content(newest!.id)).arrayBuffer()).byteLength).toBe(
        20_000 + fileCount - 1,
      )
      expect(await platform.stop()).toBe(0)
      const again = await restore(back, second)
      expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("is not empty")])
    },
    240_000,
  )

  it("that was killed is none, and neither is a restore that was", async () => {
    const killed = async (args: readonly string[], place: Place, isUnderWay: () => boolean) => {
      const child = cliCommand(args, place.env)
      const ended = once(child, "exit")
      await vi.waitUntil(isUnderWay, { timeout: 60_000, interval: 1 })
      child.kill("SIGKILL")
      expect(await ended).toEqual([null, "SIGKILL"])
    }
    const filesIn = (folder: string): number =>
      existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0
    const cut = join(newFolder(), "cut")
    await killed(
      ["backup", "-c", source.config, "--out", cut],
      source,
      () => filesIn(join(cut, "blobs")) > 4,
    )
    const target = await emptyPlace(["server", "disk"])
    const unfinished = await restore(target, cut)
    expect([unfinished.code, unfinished.stderr]).toEqual([
      1,
      expect.stringContaining("is no finished backup"),
    ])
    const into = await runCli(["backup", "-c", source.config, "--out", cut], source.env)
    expect([into.code, into.stderr]).toEqual([1, expect.stringContaining("is not empty")])
    await expectClean(source)

    const whole = await backUp(source)
    const blobs = join(target.env.RAKIT_DATA!, "blobs")
    await killed(
      ["restore", "-c", target.config, "--from", whole],
      target,
      () => filesIn(blobs) > 10,
    )
    const over = await restore(target, whole)
    expect([over.code, over.stderr]).toEqual([1, expect.stringContaining("is not empty")])
    rmSync(target.env.RAKIT_DATA!, { recursive: true })
    expect(await restore(target, whole)).toMatchObject({ code: 0 })
    await expectClean(target)
    expect(contentOf(await backUp(target))).toEqual(contentOf(whole))
  }, 180_000)

  it("with one flipped bit is refused by the file's name, and nothing is restored", async () => {
    const whole = await backUp(source)
    const blob = readdirSync(join(whole, "blobs"), { recursive: true, encoding: "utf8" }).find(
      (name) => name.length > 60,
    )!
    const files = ["manifest.json", "manifest.json.sha256", "secret.key", "blobs.jsonl.gz"]
    for (const file of [...files, "tables/ledger_call.jsonl.gz", join("blobs", blob)]) {
      const copy = join(newFolder(), "copy")
      cpSync(whole, copy, { recursive: true })
      const bytes = readFileSync(join(copy, file))
      const at = Math.floor(bytes.length / 2)
      bytes[at] = bytes[at]! ^ 1
      writeFileSync(join(copy, file), bytes)
      const dataDir = newFolder()
      const done = await runCli(["restore", "-c", source.config, "--from", copy], {
        ...{ RAKIT_DATA: dataDir, DATABASE_URL: "" },
      })
      expect([file, done.code, readdirSync(dataDir)]).toEqual([file, 1, []])
      expect(done.stderr).toMatch(/The backup is damaged: .* changed after it was written/)
      expect(done.stderr).toContain(file)
    }
  }, 180_000)
})
