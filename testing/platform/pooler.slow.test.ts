import { createHash } from "node:crypto"
import OpenAI, { toFile } from "openai"
import { afterEach, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { openTestDatabase, runCli, startPlatform } from "../platform.ts"
import { missing, startPgBouncer } from "../proxies.ts"

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const reason = missing("pgbouncer")

it.skipIf(reason)(
  `the whole server works through PgBouncer in transaction mode ${reason ?? ""}`,
  async () => {
    const database = await openTestDatabase()
    closers.push(database.close)
    const pooler = await startPgBouncer(database.url)
    closers.push(pooler.close)
    const platform = await startPlatform({
      config: new URL("../../config/test.yaml", import.meta.url).pathname,
      database: new URL(pooler.urlOf(database.url)),
      env: { DATABASE_DIRECT_URL: database.url, RAKIT_TEST_BATCH_POLL_MS: "200" },
    })
    closers.push(platform.close)
    const client = new OpenAI({
      baseURL: `${platform.url}/v1`,
      apiKey: platform.credentials.api_key,
      maxRetries: 0,
    })
    const chat = (n: number) => ({
      model: "svc-lyt",
      messages: [{ role: "user" as const, content: `question ${n}` }],
    })
    // more at once than the pooler has connections
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => client.chat.completions.create(chat(n))),
    )
    expect(answers.every(({ choices }) => choices[0]!.message.content)).toBe(true)
    const key = createHash("sha256").update(platform.url).digest("hex")
    const twice = async () =>
      (await client.chat.completions.create(chat(0), { headers: { "Idempotency-Key": key } })).id
    expect(await twice()).toBe(await twice())

    const lines = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`line-${n}`, chat(n)]))
    const batch = await completedBatch(
      client,
      await startBatch(client, "/v1/chat/completions", lines),
    )
    expect(batch.request_counts).toEqual({ total: 30, completed: 30, failed: 0 })

    const { id } = await client.files.create({
      purpose: "knowledge" as "batch",
      file: await toFile(Buffer.from("The warranty lasts two years."), "handbook.txt"),
    })
    await expect
      .poll(async () => (await client.files.retrieve(id)).status, { timeout: 30_000 })
      .toBe("processed")

    expect(await platform.stop()).toBe(0)
    const fsck = await runCli(
      ["fsck", new URL("../../config/test.yaml", import.meta.url).pathname],
      {
        ...platform.env,
      },
    )
    expect(fsck).toMatchObject({ code: 0 })
    expect(platform.output().stderr).not.toMatch(/"level":"error"/)
  },
  120_000,
)
