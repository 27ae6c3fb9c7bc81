import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import pg from "pg"
import { afterEach, describe, expect, it } from "vitest"
import { openScripted } from "../../plugins/backend-remote/testing/scripted-upstream.ts"
import { errorOf } from "../dashboard-client.ts"
import { openTestDatabase, runCli, type StartOptions, startPlatform } from "../platform.ts"

/** The drills of plugins/chaos/README.md, and what they must show. */
const plain = join(import.meta.dirname, "../../config/test.yaml")
const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** config/test.yaml with these faults (none: without the plugin), and more in its lists. */
const configWith = (chaos: object | undefined, model?: object): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-drill-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const first = chaos === undefined ? "" : `  chaos: ${JSON.stringify(chaos)}\n`
  const text = readFileSync(plain, "utf8")
    .replace("../testing", join(import.meta.dirname, ".."))
    .replace("plugins:\n", `plugins:\n${first}`)
    .replace("  dashboard: {}\n", `  dashboard: {}\n${model ? "  backend-remote: {}\n" : ""}`)
    .replace("models:\n", `models:\n${model ? `  - ${JSON.stringify(model)}\n` : ""}`)
  const file = join(folder, "drill.yaml")
  writeFileSync(file, text)
  return file
}

const open = async () => {
  const database = await openTestDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-drill-data-"))
  closers.push(database.remove, () => rmSync(dataDir, { recursive: true, force: true }))
  const start = async (config: string, options: StartOptions = {}) => {
    const platform = await startPlatform({
      config,
      database: new URL(database.url),
      dataDir,
      ...options,
    })
    closers.push(platform.close)
    // it waits as replies say, and tries again
    const client = new OpenAI({
      baseURL: `${platform.url}/v1`,
      apiKey: platform.credentials.api_key,
      maxRetries: 2,
    })
    return { platform, client }
  }
  const charges = async () => {
    const sql = new pg.Client({ connectionString: database.url })
    await sql.connect()
    const { rows } = await sql
      .query("SELECT count(*)::int AS n FROM ledger_call WHERE cost_micros > 0")
      .finally(() => sql.end())
    return rows[0].n as number
  }
  const expectClean = async (config: string) => {
    const env = { RAKIT_DATA: dataDir, DATABASE_URL: database.url }
    const { code, stdout } = await runCli(["fsck", config, "--json"], env)
    expect([code, JSON.parse(stdout).clean]).toEqual([0, true])
  }
  return { start, charges, expectClean }
}
const chat = (content: string, model = "svc-lyt") => ({
  model,
  messages: [{ role: "user" as const, content }],
})
const keyed = (n: number) => ({ headers: { "Idempotency-Key": `drill-${n}` } })

describe("a drill", () => {
  it("kills a server while it settles: under its Idempotency-Key each call is paid once", async () => {
    const { start, charges, expectClean } = await open()
    const broken = configWith({
      faults: [{ port: "billing", operation: "settle", fault: "exit", after: 10, times: 1 }],
    })
    const first = await start(broken)
    const answers = new Map<number, string>()
    const numbers = Array.from({ length: 14 }, (_, n) => n)
    for (const n of numbers)
      await first.client.chat.completions.create(chat(`${n}`), { ...keyed(n), maxRetries: 0 }).then(
        ({ id }) => answers.set(n, id),
        () => undefined,
      )
    expect(await first.platform.stop()).toBe("SIGKILL")
    expect(answers.size).toBe(10)

    const config = configWith(undefined)
    const { platform, client } = await start(config)
    const again = await Promise.all(
      numbers.map((n) => client.chat.completions.create(chat(`${n}`), keyed(n))),
    )
    for (const [n, id] of answers) expect(again[n]!.id).toBe(id)
    expect(await charges()).toBe(14)
    await platform.stop()
    await expectClean(config)
  }, 120_000)

  it("disconnects the database now and then: it starts, clients retry, each answer is paid once", async () => {
    const { start, charges, expectClean } = await open()
    const config = configWith({
      seed: 7,
      faults: [
        { port: "database", operation: "run", fault: "disconnect", probability: 0.05 },
        { port: "database", operation: "transaction", fault: "disconnect", probability: 0.05 },
        { port: "billing", operation: "admit", fault: "disconnect", after: 3, times: 2 },
      ],
    })
    const { platform, client } = await start(config)
    const numbers = Array.from({ length: 30 }, (_, n) => n)
    const ends = await Promise.all(
      numbers.map((n) => errorOf(client.chat.completions.create(chat(`${n}`), keyed(n)))),
    )
    for (const end of ends.filter((end) => end !== undefined))
      expect(end).toMatchObject({ status: 503, code: "database_unavailable" })
    const answered = ends.filter((end) => end === undefined).length
    expect(answered).toBeGreaterThan(20)
    const metrics = await (await fetch(`${platform.url}/metrics`)).text()
    expect(metrics).toContain(
      'rakit_chaos_faults_total{port="billing",operation="admit",fault="disconnect"} 2',
    )
    expect(metrics).toMatch(/port="database",operation="run",fault="disconnect"\} [1-9]/)
    expect(await platform.stop()).toBe(0)
    // what could not be settled while it was out of reach is kept, and settled by the next server
    const later = await start(configWith(undefined))
    await expect.poll(charges, { timeout: 30_000 }).toBe(answered)
    await later.platform.stop()
    await expectClean(config)
  }, 120_000)

  it("moves the clock by an hour: calls go on, and so they do when it is right again", async () => {
    const engine = await openScripted()
    closers.push(engine.close)
    const remote = {
      id: "remote",
      task: "chat",
      limits: { contextTokens: 4096, maxOutputTokens: 64 },
      backend: "remote",
      price: { input: 1500, output: 6000 },
      options: { upstreams: [{ url: engine.url, model: "m" }] },
    }
    const { start, charges, expectClean } = await open()
    const upload = async (client: OpenAI) =>
      client.files.create({ file: await toFile(Buffer.from("{}\n"), "a.jsonl"), purpose: "batch" })
    const ids: string[] = []
    const run = async (config: string, aheadS: number) => {
      const { platform, client } = await start(config)
      // backends go by deadlines that the kernel sets
      for (const model of ["svc-lyt", "remote"])
        expect(await errorOf(client.chat.completions.create(chat("one", model)))).toBeUndefined()
      const { id, created_at } = await upload(client)
      ids.push(id)
      expect(Math.abs(created_at - Date.now() / 1000 - aheadS)).toBeLessThan(120)
      for (const each of ids) expect(await (await client.files.content(each)).text()).toBe("{}\n")
      expect(await platform.stop()).toBe(0)
      await expectClean(config)
    }
    await run(configWith({ clockSkewMs: 3_600_000 }, remote), 3_600)
    await run(configWith({ clockSkewMs: -3_600_000 }, remote), -3_600)
    await run(configWith(undefined, remote), 0)
    expect(await charges()).toBe(6)
  }, 180_000)

  it("fails a check of /readyz, and the server serves on", async () => {
    const { start } = await open()
    const config = configWith({
      faults: [{ port: "health", operation: "database", fault: "fail", times: 2 }],
    })
    const { platform, client } = await start(config)
    const look = async () => {
      const reply = await fetch(`${platform.url}/readyz`)
      const { checks } = (await reply.json()) as { readonly checks: readonly object[] }
      return [reply.status, checks.find((check) => "name" in check && check.name === "database")]
    }
    expect(await look()).toEqual([
      503,
      { name: "database", ok: false, reason: "injected by the plugin chaos (database)" },
    ])
    expect(await errorOf(client.chat.completions.create(chat("one")))).toBeUndefined()
    // results are kept for a second
    await expect.poll(look, { timeout: 10_000 }).toEqual([200, { name: "database", ok: true }])
  }, 60_000)

  it("that would show nothing is refused: a misspelt operation, and chaos behind a port", async () => {
    const env = { RAKIT_DATA: tmpdir(), DATABASE_URL: "postgres://u:p@127.0.0.1:9/r", PORT: "0" }
    const misspelt = configWith({ faults: [{ port: "storage", operation: "putt", fault: "fail" }] })
    expect(await runCli(["check", misspelt], env)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /drill\.yaml:\d+:\d+ plugins\.chaos\.faults\[0\]: the port storage has no operation\s'putt', but put, get/,
      ),
    })
    const late = configWith(undefined)
    writeFileSync(
      late,
      readFileSync(late, "utf8").replace("  dashboard: {}\n", "  dashboard: {}\n  chaos: {}\n"),
    )
    expect(await runCli(["serve", late], env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("chaos must be the first under 'plugins'"),
    })
  }, 60_000)
})
