import { once } from "node:events"
import OpenAI from "openai"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { type ManyServers, startMany } from "../many-servers.ts"
import { missing } from "../proxies.ts"

const reason = missing("nginx")

describe.skipIf(reason)(`three servers on one database, behind nginx ${reason ?? ""}`, () => {
  let many: ManyServers
  let client: OpenAI
  const clientOf = (index: number) =>
    new OpenAI({ baseURL: `${many.servers[index]!.url}/v1`, apiKey: many.apiKey, maxRetries: 0 })
  const ask = (content: string, model = "svc-lyt") => ({
    model,
    messages: [{ role: "user" as const, content }],
  })
  beforeAll(async () => {
    many = await startMany({ roles: ["api", "api", "worker"] })
    client = new OpenAI({ baseURL: `${many.url}/v1`, apiKey: many.apiKey, maxRetries: 0 })
  }, 60_000)
  afterAll(() => many?.close())

  it("a reply is replayed by another server", async () => {
    const headers = { "Idempotency-Key": "replayed" }
    const replies = [0, 1, 0].map(
      (index) => () => clientOf(index).chat.completions.create(ask("once"), { headers }),
    )
    const ids: string[] = []
    for (const reply of replies) ids.push((await reply()).id)
    expect(new Set(ids).size).toBe(1)
  })

  it("a batch that comes through nginx is done once, by the worker", async () => {
    const bodies = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`n${n}`, ask(`${n}`)]))
    const id = await startBatch(client, "/v1/chat/completions", bodies)
    const batch = await completedBatch(client, id)
    expect(batch.request_counts).toEqual({ total: 40, completed: 40, failed: 0 })
    const text = await (await clientOf(1).files.content(batch.output_file_id!)).text()
    const names = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).custom_id as string)
    expect(names.toSorted()).toEqual(Object.keys(bodies).toSorted())
  }, 60_000)

  it("a retry of a call whose server was killed runs on another one, soon", async () => {
    const headers = { "Idempotency-Key": "killed" }
    // svc-omni takes 20 ms for a token
    const body = ask(Array.from({ length: 400 }, (_, n) => `word${n}`).join(" "), "svc-omni")
    const admitted = once(many.servers[0]!.process, "exit")
    const lost = clientOf(0)
      .chat.completions.create(body, { headers })
      .then(
        () => "answered",
        () => "lost",
      )
    const database = new pg.Client({ connectionString: many.databaseUrl })
    await database.connect()
    const running = "SELECT state FROM idempotency_key WHERE key = 'killed'"
    await expect
      .poll(async () => (await database.query(running)).rows)
      .toEqual([{ state: "running" }])
    await database.end()
    many.servers[0]!.process.kill("SIGKILL")
    await admitted
    expect(await lost).toBe("lost")
    const refused = await clientOf(1)
      .chat.completions.create(body, { headers })
      .then(
        () => undefined,
        (error: InstanceType<typeof OpenAI.APIError>) => error,
      )
    // its lease, of 15 s, was renewed at most 3 s before the kill
    const seconds = Number(refused?.headers?.get("retry-after"))
    expect([refused?.status, seconds > 5 && seconds <= 15]).toEqual([409, true])
    // the official client waits for so long, and one retry of its two is enough
    const statuses: number[] = []
    const patient = new OpenAI({
      baseURL: `${many.servers[1]!.url}/v1`,
      apiKey: many.apiKey,
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        statuses.push(response.status)
        return response
      },
    })
    const retry = async () => (await patient.chat.completions.create(body, { headers })).id
    const first = await retry()
    expect(statuses).toEqual([409, 200])
    expect(await retry()).toBe(first)
  }, 60_000)

  it("and then the ledger is sound", async () => {
    expect(await many.fsck()).toMatchObject({ code: 0 })
  }, 60_000)
})
