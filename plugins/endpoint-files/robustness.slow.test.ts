import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { openTestDatabase } from "../../testing/postgres.ts"

const megabyte = 2 ** 20
const bytes = Buffer.alloc(40 * megabyte, '{"custom_id":"a"}\n')

const send = async (
  { url }: Platform,
  key: string,
  body: FormData | ReadableStream,
  more: RequestInit = {},
) => {
  const reply = await fetch(`${url}/v1/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...(more.headers as Record<string, string>) },
    body,
    ...more,
  })
  return { status: reply.status, json: (await reply.json()) as { id: string; bytes: number } }
}
const form = (size = bytes.length) => {
  const body = new FormData()
  body.append("file", new File([bytes.subarray(0, size)], "big.jsonl"))
  body.append("purpose", "batch")
  return body
}

/** The resident memory in MB, from /proc. */
const resident = (pid: number, field: "VmRSS" | "VmHWM") =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) /
  1024
const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, "5")

it.runIf(process.platform === "linux")(
  "ten uploads of 40 MB at once are never held in memory",
  async () => {
    const platform = await startPlatform()
    try {
      const { api_key } = platform.credentials
      const pid = platform.process.pid!
      // warms up what the first request loads
      for (let n = 0; n < 5; n++) await send(platform, api_key, form(1000))
      forgetPeak(pid)
      const before = resident(pid, "VmRSS")
      const made = await Promise.all(
        Array.from({ length: 10 }, () => send(platform, api_key, form())),
      )
      const peak = resident(pid, "VmHWM")
      console.log(
        `resident before ${before.toFixed(0)} MB, at most ${peak.toFixed(0)} MB during ten uploads of 40 MB: +${(peak - before).toFixed(0)} MB`,
      )
      expect(made.map(({ status, json }) => [status, json.bytes])).toEqual(
        made.map(() => [200, bytes.length]),
      )
      // of 400 MB; what is more than some buffers is garbage not collected yet
      expect(peak - before).toBeLessThan(120)
    } finally {
      await platform.close()
    }
  },
  300_000,
)

it("a server that is killed in the middle of an upload leaves no file, and the next one tidies up", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-files-"))
  const test = await openTestDatabase()
  const db = new pg.Client({ connectionString: test.url })
  await db.connect()
  const start = () => startPlatform({ dataDir, database: new URL(test.url) })
  const published = () =>
    readdirSync(join(dataDir, "blobs"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith("~"))
      .map(({ name }) => name)
  const count = async (table: string) => (await db.query(`SELECT 1 FROM ${table}`)).rowCount
  try {
    const first = await start()
    const { api_key } = first.credentials
    const kept = await send(first, api_key, form())
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(
          Buffer.from(
            '--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n',
          ),
        )
        controller.enqueue(bytes.subarray(0, 5 * megabyte))
      },
      pull: () => new Promise(() => {}),
    })
    const cut = send(first, api_key, body, {
      headers: {
        authorization: `Bearer ${api_key}`,
        "content-type": "multipart/form-data; boundary=x",
      },
      duplex: "half",
    } as RequestInit).catch(() => "cut")
    await expect.poll(() => count("files_incoming"), { timeout: 20_000 }).toBe(1)
    expect(await first.stop("SIGKILL")).toBe("SIGKILL")
    expect(await cut).toBe("cut")
    expect(published()).toHaveLength(1)
    await db.query("UPDATE files_incoming SET lease_until = '2000-01-01'")
    const second = await start()
    const list = await fetch(`${second.url}/v1/files`, {
      headers: { authorization: `Bearer ${api_key}` },
    })
    expect(((await list.json()) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual([
      kept.json.id,
    ])
    await expect.poll(() => count("files_incoming"), { timeout: 20_000 }).toBe(0)
    await expect.poll(() => count("files_trash"), { timeout: 20_000 }).toBe(0)
    expect(published()).toHaveLength(1)
    expect((await db.query("SELECT sum(bytes) AS bytes FROM files_usage")).rows).toEqual([
      { bytes: String(bytes.length) },
    ])
    await second.close()
  } finally {
    await db.end()
    await test.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 120_000)

const mountSmall = (folder: string): boolean => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

it("a full disk is 507, loses nothing, and serves again when there is room", async ({ skip }) => {
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-files-"))
  const disk = join(dataDir, "blobs")
  mkdirSync(disk)
  if (!mountSmall(disk)) {
    rmSync(dataDir, { recursive: true })
    skip("a file system can't be mounted here")
  }
  const platform = await startPlatform({ dataDir })
  try {
    const { api_key } = platform.credentials
    const kept = await send(platform, api_key, form(megabyte))
    const full = await send(platform, api_key, form(6 * megabyte))
    expect(full).toMatchObject({
      status: 507,
      json: { error: { code: "storage_full", type: "server_error" } },
    })
    const headers = { authorization: `Bearer ${api_key}` }
    const content = await fetch(`${platform.url}/v1/files/${kept.json.id}/content`, { headers })
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes.subarray(0, megabyte))).toBe(true)
    const list = await fetch(`${platform.url}/v1/files`, { headers })
    expect(((await list.json()) as { data: unknown[] }).data).toHaveLength(1)
    expect(readdirSync(join(disk, "~incoming"))).toEqual([])
    expect((await send(platform, api_key, form(2 * megabyte))).status).toBe(200)
  } finally {
    await platform.close()
    execFileSync("umount", [disk])
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 60_000)
