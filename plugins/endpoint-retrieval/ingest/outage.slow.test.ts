import OpenAI from "openai"
import { expect, it, vi } from "vitest"
import {
  apiKey,
  folder,
  kept,
  sound,
  start,
  useOutageFixture,
} from "../../../testing/platform/outage-fixture.ts"
import { startStoppableDatabase } from "../../../testing/platform/stoppable-database.ts"
import { writeTestConfig } from "../../../testing/test-config.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })
useOutageFixture()

const text = Array.from({ length: 9_000 }, (_, n) => `This is line ${n}.`).join("\n")

it("a database that goes in the middle of ingest: the file goes on when it is back, paid once", async () => {
  const database = kept(await startStoppableDatabase())
  const { config, remove } = writeTestConfig({
    plugin: "endpoint-retrieval",
    settings: { leaseMs: 5_000 },
    stepMs: 10,
  })
  kept({ close: remove })
  const server = kept(await start(config, database.url, folder))
  const client = new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 5 })
  const { id } = await client.files.create({
    file: new File([text], "a.txt"),
    purpose: "knowledge" as never,
  })
  const documents = () =>
    database.query<{ state: string; chunks: number; embedded: number; failures: number }>(
      "SELECT state, chunks, embedded, failures FROM retrieval_document",
    )
  await vi.waitFor(
    async () => expect((await documents())[0]).toMatchObject({ state: "embedding", embedded: 64 }),
    { timeout: 30_000, interval: 10 },
  )
  await database.stop()
  const isAway = await client.get(`/files/${id}`, { maxRetries: 0 }).then(
    () => false,
    ({ status }) => status === 503,
  )
  expect(isAway).toBe(true)
  await database.start()
  const file = await client.files.waitForProcessing(id, { pollInterval: 200 })
  expect(file.status).toBe("processed")
  const [document] = await documents()
  expect(document).toMatchObject({ state: "ready", embedded: document!.chunks, failures: 0 })
  const calls = await database.query<{ state: string }>(
    `SELECT state FROM ledger_call WHERE parent_id = '${id}' AND state = 'settled' AND cost_micros > 0`,
  )
  expect(calls).toHaveLength(1)
  await sound(config, server.env)
})
