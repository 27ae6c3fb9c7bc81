import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI from "openai"
import { expect, it, vi } from "vitest"
import { startBatch } from "../batch-client.ts"
import { writeMoneyConfig } from "./money-config.ts"
import {
  apiKey,
  chat,
  chatsInFlight,
  codeOf,
  costIdr,
  expectWhole,
  folder,
  kept,
  post,
  readiness,
  sound,
  standing,
  start,
  untilWell,
  useOutageFixture,
} from "./outage-fixture.ts"
import { startStoppableDatabase, startWire } from "./stoppable-database.ts"

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })
useOutageFixture()

it("a database that is stopped: answers in flight arrive, new calls are 503, each is paid once", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, database.url))
  const { answers } = await chatsInFlight(database, server.url, 20)
  await database.stop()
  const refused = await Promise.all(
    ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank"].map((path) =>
      post(
        server.url,
        path,
        path.endsWith("completions")
          ? chat(3, false)
          : {
              model: path.endsWith("rerank") ? "svc-rerank" : "svc-embed",
              input: "x",
              query: "x",
              documents: ["a"],
            },
      ),
    ),
  )
  for (const { status, headers, text } of refused) {
    expect([status, codeOf(text)]).toEqual([503, "database_unavailable"])
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
  }
  await vi.waitFor(async () =>
    expect(await readiness(server.url)).toMatchObject({
      http: 503,
      status: "failing",
      database: { ok: false },
    }),
  )
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  expectWhole(await answers)
  const client = new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 5 })
  const asked = client.chat.completions.create({
    model: "svc-lyt",
    messages: [{ role: "user", content: "hello again" }],
  })
  await database.start()
  expect((await asked).choices[0]?.message.content).toContain("hello again")
  await vi.waitFor(
    async () =>
      expect(await standing(database)).toEqual([`20 settled ${(20 * costIdr).toFixed(3)}`]),
    { timeout: 20_000 },
  )
  await vi.waitFor(async () => expect((await readiness(server.url)).status).toBe("ready"))
  await sound(config, server.env)
})

it("kill -9 while it is down: the next start charges what was kept, once", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000, leaseMs: 3_000 })
  const server = kept(await start(config, database.url))
  const { answers } = await chatsInFlight(database, server.url, 10)
  await database.stop()
  expectWhole(await answers)
  const journals = join(folder, "settlements")
  const [journal] = readdirSync(journals)
  const lines = readFileSync(join(journals, journal!), "utf8").split("\n")
  expect(lines.filter((line) => line.startsWith("{"))).toHaveLength(10)
  await server.stop("SIGKILL")
  await database.start()
  const next = kept(await start(config, database.url))
  const paid = [`10 settled ${(10 * costIdr).toFixed(3)}`]
  expect(await standing(database), "before it serves anybody").toEqual(paid)
  await vi.waitFor(() => expect(readdirSync(journals)).not.toContain(journal), 30_000)
  expect(await standing(database)).toEqual(paid)
  await sound(config, next.env)
})

it("a network that is cut without a word: /readyz says so, calls are refused, and both end with it", async () => {
  const database = kept(await startStoppableDatabase())
  const wire = kept(await startWire(database.url))
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, wire.url))
  const { answers } = await chatsInFlight(database, server.url, 10)
  wire.cut()
  const first = await post(server.url, "/v1/chat/completions", chat(3, false))
  expect([first.status, codeOf(first.text)]).toEqual([503, "database_unavailable"])
  expect(await readiness(server.url)).toMatchObject({ status: "failing", database: { ok: false } })
  expectWhole(await answers)
  const some = await Promise.all(
    Array.from({ length: 50 }, () => post(server.url, "/v1/chat/completions", chat(3, false))),
  )
  expect(new Set(some.map(({ status, text }) => `${status} ${codeOf(text)}`))).toEqual(
    new Set(["503 database_unavailable"]),
  )
  wire.mend()
  await untilWell(server.url)
  await vi.waitFor(async () => {
    const states = (await standing(database)).join()
    expect(states).toMatch(/11 settled/)
    // the first one arrived when the wire was mended; nobody had its answer
    expect(states).not.toMatch(/open/)
  }, 90_000)
  await vi.waitFor(async () => expect((await readiness(server.url)).status).toBe("ready"), 20_000)
  await sound(config, { ...server.env, DATABASE_URL: database.url })
})

it("all connections are ended: a moment later calls go on", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, database.url))
  const { answers } = await chatsInFlight(database, server.url, 10)
  await database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
  )
  await untilWell(server.url)
  expectWhole(await answers)
  await vi.waitFor(
    async () => expect(await standing(database)).toEqual([expect.stringMatching(/^11 settled/)]),
    20_000,
  )
  await sound(config, server.env)
})

it("a batch waits for it: each line is answered and paid once, and none fails", async () => {
  const database = kept(await startStoppableDatabase())
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, database.url))
  const client = new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 8 })
  const bodies = Array.from({ length: 120 }, (_, i) => [`line-${i}`, chat(150, false)])
  const id = await startBatch(client, "/v1/chat/completions", Object.fromEntries(bodies))
  await vi.waitFor(
    async () =>
      expect((await client.batches.retrieve(id)).request_counts?.completed).toBeGreaterThan(0),
    60_000,
  )
  await database.stop()
  await vi.waitFor(() => expect(server.output().stderr).toContain("waits_for_outage"), 60_000)
  await database.start()
  await vi.waitFor(
    async () => expect((await client.batches.retrieve(id)).status).toBe("completed"),
    120_000,
  )
  const { request_counts } = await client.batches.retrieve(id)
  expect(request_counts).toEqual({ total: 120, completed: 120, failed: 0 })
  expect((await standing(database)).filter((states) => !states.includes("voided"))).toEqual([
    expect.stringMatching(/^120 settled/),
  ])
  await sound(config, server.env)
})
