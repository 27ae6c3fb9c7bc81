import { execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import OpenAI, { toFile } from "openai"
import { addAccount, askDashboard } from "../dashboard-client.ts"
import type { Credentials } from "../platform.ts"

/**
 * Makes the fixture of a release, for upgrade.slow.test.ts: `npm run release-fixture -- VERSION [CHECKOUT]`.
 * Uses the server of CHECKOUT (this repository; an older one needs its node_modules) as people
 * do, on a PostgreSQL server of this machine, and keeps in `releases/VERSION` what it leaves.
 */
const [version = "", checkout = join(import.meta.dirname, "../..")] = process.argv.slice(2)
const folder = join(import.meta.dirname, "releases", version)
const source = resolve(checkout)

const until = async <A>(what: string, look: () => Promise<A | undefined | false>): Promise<A> => {
  for (let tries = 0; tries < 600; tries++) {
    const found = await look().catch(() => undefined)
    if (found) return found
    await setTimeout(100)
  }
  throw new Error(`waited for a minute: ${what}`)
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** A PostgreSQL server in `work`, of the newest one that is installed (PG_BIN names another). */
const startPostgres = async (work: string) => {
  const versions = "/usr/lib/postgresql"
  const newest = existsSync(versions) ? readdirSync(versions).sort().at(-1) : undefined
  const bin = process.env.PG_BIN ?? (newest && join(versions, newest, "bin"))
  if (!bin) throw new Error("There is no PostgreSQL server here. Fix: apt-get install postgresql.")
  const data = join(work, "postgres")
  const isRoot = process.getuid?.() === 0
  mkdirSync(data)
  const as = isRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
  const run = (program: string, ...args: string[]) => {
    const [command, ...rest] = [...as, join(bin, program), ...args]
    return execFileSync(command!, rest, { cwd: "/", maxBuffer: 2 ** 28 }).toString()
  }
  if (isRoot)
    for (const path of [work, data])
      chownSync(path, Number(execFileSync("id", ["-u", "postgres"])), 0)
  run("initdb", "-D", join(data, "db"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
  const port = await freePort()
  const options = `-p ${port} -k ${data} -c listen_addresses=127.0.0.1 -c fsync=off`
  run("pg_ctl", "-D", join(data, "db"), "-w", "-l", join(data, "log"), "-o", options, "start")
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  return {
    url,
    // lines with a backslash are commands of psql
    dump: () =>
      run("pg_dump", "--no-owner", "--no-privileges", "--inserts", url)
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("\\") && !line.startsWith("--"))
        .join("\n"),
    stop: () => run("pg_ctl", "-D", join(data, "db"), "-m", "fast", "stop"),
  }
}

const startServer = async (work: string, database: string) => {
  const port = await freePort()
  const data = join(work, "data")
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", PORT: String(port) },
    ...{ RAKIT_DATA: data, DATABASE_URL: database, RAKIT_TEST_BATCH_POLL_MS: "200" },
    RAKIT_TEST_DRAIN_MS: "2000",
  }
  const args = [join(source, "runtime/rakit.js"), "serve", join(source, "config/test.yaml")]
  const child = spawn(process.execPath, args, { cwd: source, env, stdio: "inherit" })
  await until("the server is ready", async () => {
    if (child.exitCode !== null) throw new Error("the server ended")
    return (await fetch(`${url}/readyz`)).ok
  })
  const stop = async () => {
    child.kill("SIGTERM")
    await once(child, "exit")
  }
  return { url, data, stop }
}

type Client = OpenAI
const question = (model: string, content: string) => ({
  model,
  messages: [{ role: "user" as const, content }],
})

const startBatch = async (client: Client, model: string, lines: number): Promise<string> => {
  const text = Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      ...{ custom_id: n === 0 ? "one" : `line-${n}`, method: "POST", url: "/v1/chat/completions" },
      body: question(model, `line ${n}`),
    }),
  ).join("\n")
  const input = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  })
  const { id } = await client.batches.create({
    input_file_id: input.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  })
  return id
}

const pay = async (client: Client, url: string): Promise<void> => {
  for (const content of ["one", "two", "three"])
    await client.chat.completions.create(question("svc-lyt", content))
  await client.embeddings.create({ model: "svc-embed", input: "text", encoding_format: "float" })
  await client.post("/rerank", { body: { model: "svc-rerank", query: "q", documents: ["a", "b"] } })
  await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      ...{ authorization: `Bearer ${client.apiKey}`, "content-type": "application/json" },
      "idempotency-key": "kept",
    },
    body: JSON.stringify(question("svc-lyt", "once")),
  })
  await client.chat.completions.create(question("none", "refused")).catch(() => {})
}

/** A second account with money and two keys, one of which is revoked. */
const addCustomer = async (url: string, { email, password }: Credentials) => {
  const { token } = await askDashboard(url, "/dashboard/login", "", { email, password })
  const { id, key } = await addAccount(url, token)
  await askDashboard(url, `/admin/accounts/${id}/grants`, token, {
    ...{ amount_idr: 1234.5, reason: "for the fixture" },
  })
  const customer = await askDashboard(url, "/dashboard/login", "", {
    ...{ email: "other@example.com", password: "correct horse battery" },
  })
  const revoked = await askDashboard(url, "/dashboard/keys", customer.token, { name: "revoked" })
  await fetch(`${url}/dashboard/keys/${revoked.id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${customer.token}` },
  })
  return { account: id, key, revoked: revoked.key }
}

/** What the server of that version has of files, batches, webhooks and retrieval. */
const fill = async (url: string, credentials: Credentials) => {
  const client = new OpenAI({
    ...{ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 },
  })
  await pay(client, url)
  const customer = await addCustomer(url, credentials)
  const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: customer.key, maxRetries: 0 })
  await other.chat.completions.create(question("svc-omni", "of another account"))
  const serves = async (path: string) => {
    const headers = { authorization: `Bearer ${credentials.api_key}` }
    return (await fetch(`${url}/v1${path}`, { headers })).status !== 404
  }
  const has = { files: await serves("/files"), retrieval: await serves("/retrieval") }
  if (!has.files) return { ...has, ...customer }
  const done = await startBatch(client, "svc-lyt", 2)
  await until(
    "a batch completes",
    async () => (await client.batches.retrieve(done)).status === "completed",
  )
  await client.post("/webhooks", {
    body: { url: "https://example.com/", events: ["batch.completed"] },
  })
  const notes = await client.files.create({
    file: await toFile(Buffer.from(`kept from ${version}\n`), "notes.txt"),
    purpose: "knowledge" as "assistants",
  })
  if (has.retrieval)
    await until(
      "a document is read",
      async () => (await client.files.retrieve(notes.id)).status === "processed",
    )
  // stopped in the middle
  const begun = await startBatch(client, "svc-omni", 40)
  await until(
    "a batch has begun",
    async () => ((await client.batches.retrieve(begun)).request_counts?.completed ?? 0) > 0,
  )
  return { ...has, ...customer, begun }
}

const main = async (): Promise<void> => {
  if (!/^\d+\.\d+\.\d+[\w.-]*$/.test(version) || existsSync(folder))
    throw new Error(`Name a version, 1.2.3, that has no fixture yet: ${folder}`)
  const work = mkdtempSync(join(tmpdir(), `rakit-release-${randomBytes(2).toString("hex")}`))
  const postgres = await startPostgres(work)
  try {
    const server = await startServer(work, postgres.url)
    const read = (name: string) => readFileSync(join(server.data, name), "utf8")
    const made = await fill(
      server.url,
      JSON.parse(read("credentials.json")) as Credentials,
    ).finally(server.stop)
    const commit = execFileSync("git", ["-C", source, "rev-parse", "HEAD"]).toString().trim()
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "database.sql.gz"), gzipSync(postgres.dump(), { level: 9 }))
    writeFileSync(
      join(folder, "fixture.json"),
      `${JSON.stringify({ version, commit, ...made }, undefined, 2)}\n`,
    )
    for (const name of ["secret.key", "credentials.json"])
      copyFileSync(join(server.data, name), join(folder, name))
    const blobs = join(server.data, "blobs")
    if (existsSync(blobs)) cpSync(blobs, join(folder, "blobs"), { recursive: true })
  } finally {
    postgres.stop()
    rmSync(work, { recursive: true, force: true })
  }
}

await main()
