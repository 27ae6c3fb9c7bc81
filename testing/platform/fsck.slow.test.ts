import { rmSync } from "node:fs"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import OpenAI, { toFile } from "openai"
import pg from "pg"
import { afterEach, expect, it } from "vitest"
import { startBatch } from "../batch-client.ts"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { openTestDatabase } from "../postgres.ts"

const config = fileURLToPath(new URL("../../config/test.yaml", import.meta.url))
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Report {
  readonly clean: boolean
  readonly checks: readonly {
    readonly name: string
    readonly looked: number
    readonly found: number
    readonly findings: readonly unknown[]
    readonly failure?: string
  }[]
}
const fsck = async ({ env }: Platform, ...args: string[]) => {
  const { code, stdout, stderr } = await runCli(["fsck", config, "--json", ...args], env)
  if (!stdout.startsWith("{")) throw new Error(stderr)
  return { code, report: JSON.parse(stdout) as Report }
}
/** Expects that no check failed or found anything. */
const expectClean = async (platform: Platform) => {
  const { code, report } = await fsck(platform)
  expect([
    code,
    report.clean,
    report.checks.flatMap(({ findings, failure }) => [...findings, ...(failure ? [failure] : [])]),
  ]).toEqual([0, true, []])
  return report
}

const openReceiver = async () => {
  const server = createServer(
    (asked, reply) => void asked.resume().on("end", () => reply.writeHead(503).end()),
  )
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  closers.push(() => {
    server.closeAllConnections()
    return new Promise((done) => server.close(done))
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/**
 * Loops over calls, files, uploads and deliveries until it is stopped. Errors are ignored: the
 * server is killed meanwhile.
 */
const keepBusy = ({ url, credentials }: Pick<Platform, "url" | "credentials">) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  let isBusy = true
  let turns = 0
  const chat = () =>
    client.chat.completions.create({
      model: "svc-lyt",
      messages: [{ role: "user", content: "one two three" }],
    })
  const file = async () => {
    const made = await client.files.create({
      file: await toFile(Buffer.alloc(200_000, "{}\n"), "in.jsonl"),
      purpose: "batch",
    })
    if (turns++ % 2 === 0) await client.files.delete(made.id)
  }
  const upload = async () => {
    const { id } = await client.uploads.create({
      filename: "a.jsonl",
      purpose: "batch",
      bytes: 100_000,
      mime_type: "application/jsonl",
    })
    const part = await client.uploads.parts.create(id, {
      data: await toFile(Buffer.alloc(100_000, "{}\n"), "part"),
    })
    if (turns++ % 3 !== 0) await client.uploads.complete(id, { part_ids: [part.id] })
  }
  const line = (n: number) => ({
    model: n % 9 === 0 ? "none" : "svc-lyt",
    messages: [{ role: "user", content: `${n}` }],
  })
  const batch = async () => {
    const bodies = Array.from({ length: 300 }, (_, n) => [`line-${n}`, line(n)])
    await startBatch(client, "/v1/chat/completions", Object.fromEntries(bodies))
    await new Promise((done) => setTimeout(done, 500))
  }
  const again = async (work: () => Promise<unknown>) => {
    while (isBusy) await work().catch(() => new Promise((done) => setTimeout(done, 50)))
  }
  const all = Promise.all([chat, chat, file, file, upload, batch].map(again))
  return {
    client,
    stop: async () => {
      isBusy = false
      await all
    },
  }
}

/** An upload that sends a part of its body and then stalls. */
const hangingUpload = ({ url, credentials }: Platform) => {
  const headers = {
    authorization: `Bearer ${credentials.api_key}`,
    "content-type": "multipart/form-data; boundary=x",
    "content-length": "1000000",
  }
  const hanging = request(`${url}/v1/files`, { method: "POST", headers })
  hanging.on("error", () => {})
  hanging.write(
    `--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n${"{}\n".repeat(100_000)}`,
  )
  closers.push(() => hanging.destroy())
}

it("is clean beside a busy server, after kill -9, and after its recovery; names what was broken, and repairs it", async () => {
  const database = await openTestDatabase()
  closers.push(database.close)
  const host = await openReceiver()
  const started = {
    database: new URL(database.url),
    env: { RAKIT_WEBHOOK_ALLOW_HOSTS: host, RAKIT_TEST_BATCH_POLL_MS: "200" },
  }
  const first = await startPlatform(started)
  const dataDir = first.env.RAKIT_DATA!
  closers.push(() => rmSync(dataDir, { recursive: true, force: true }))
  closers.push(() => first.process.signalCode === null && first.stop("SIGKILL"))
  const busy = keepBusy(first)
  closers.push(busy.stop)
  const webhook = await busy.client.post<{ id: string }>("/webhooks", {
    body: { url: `http://${host}/`, events: ["batch.completed"] },
  })
  for (let n = 0; n < 5; n++) await busy.client.post(`/webhooks/${webhook.id}/test`)
  const beside = await expectClean(first)
  expect(beside.checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "ledger",
      "usage",
      "batches",
      "batch parts",
      "files",
      "blobs",
      "quota",
      "uploads",
      "deliveries",
      "queue",
    ]),
  )
  expect(
    beside.checks.filter(
      ({ name, looked }) =>
        ["ledger", "usage", "batches", "files", "blobs", "quota", "uploads"].includes(name) &&
        looked === 0,
    ),
  ).toEqual([])

  hangingUpload(first)
  await busy.client.post(`/webhooks/${webhook.id}/test`)
  await first.stop("SIGKILL")
  await busy.stop()
  await expectClean(first)

  const second = await startPlatform({ ...started, dataDir })
  closers.push(second.close)
  const again = keepBusy({ url: second.url, credentials: first.credentials })
  closers.push(again.stop)
  await expectClean(second)
  const kept = await again.client.files.create({
    file: await toFile(Buffer.from("{}\n"), "kept.jsonl"),
    purpose: "batch",
  })
  await again.stop()

  const db = new pg.Client({ connectionString: database.url })
  await db.connect()
  closers.push(() => db.end())
  await db.query("UPDATE files_usage SET bytes = bytes + 7")
  await db.query(
    "UPDATE ledger_usage SET requests = requests + 1 WHERE hour = (SELECT max(hour) FROM ledger_usage)",
  )
  const { rows } = await db.query<{ blob_key: string }>(
    "SELECT blob_key FROM files_file WHERE id = $1",
    [kept.id],
  )
  rmSync(join(dataDir, "blobs", `${rows[0]!.blob_key}~`))
  const found = await fsck(second)
  expect([
    found.code,
    found.report.checks.filter((check) => check.found > 0).map(({ name }) => name),
  ]).toEqual([1, ["usage", "files", "quota"]])
  const repaired = await fsck(second, "--repair")
  expect(repaired.code).toBe(1)
  const left = await fsck(second)
  expect(left.report.checks.filter((check) => check.found > 0)).toMatchObject([
    {
      name: "files",
      found: 1,
      findings: [
        {
          subject: expect.stringMatching(
            new RegExp(`^file ${kept.id} of account acct_\\w+ \\(live\\)$`),
          ),
        },
      ],
    },
  ])
  await again.client.files.delete(kept.id)
  await expectClean(second)
}, 400_000)
