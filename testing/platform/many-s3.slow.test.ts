import OpenAI, { toFile } from "openai"
import pg from "pg"
import Stripe from "stripe"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../batch-client.ts"
import { addAccount, askDashboard, errorOf } from "../dashboard-client.ts"
import { type ManyServers, startMany } from "../many-servers.ts"
import { missing } from "../proxies.ts"
import { openReceiver, type Receiver } from "../receiver.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"
import { newBucket } from "./storage-config.ts"

const reason = missing("nginx") ?? noS3Server()
const { webhooks } = new Stripe("sk_test_nobody")

describe.skipIf(reason)(
  `two api servers and two workers on one PostgreSQL and one S3 store ${reason ?? ""}`,
  () => {
    let s3: S3Server
    let receiver: Receiver
    let many: ManyServers
    let session: string
    beforeAll(async () => {
      s3 = await startS3Server()
      receiver = await openReceiver()
      many = await startMany({
        roles: ["api", "api", "worker", "worker"],
        s3: newBucket(s3),
        env: { RAKIT_WEBHOOK_ALLOW_HOSTS: receiver.host },
      })
      session = await many.signIn()
    }, 120_000)
    afterAll(async () => {
      await many?.close()
      await receiver?.close()
      await s3?.close()
    })

    const clientOf = (index: number, apiKey = many.apiKey) =>
      new OpenAI({ baseURL: `${many.servers[index]!.url}/v1`, apiKey, maxRetries: 0 })
    const question = (content: string, model = "svc-lyt") => ({
      model,
      messages: [{ role: "user" as const, content }],
    })
    const makeKey = (limits: object) =>
      askDashboard(many.servers[0]!.url, "/dashboard/keys", session, { name: "limited", limits })
    const query = async (sql: string, values: readonly unknown[] = []) => {
      const database = new pg.Client({ connectionString: many.databaseUrl })
      await database.connect()
      try {
        return (await database.query(sql, [...values])).rows
      } finally {
        await database.end()
      }
    }

    it("requests per minute of a key are counted over all servers", async () => {
      const { key } = await makeKey({ rpm: 10 })
      const ends = await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          errorOf(clientOf(n % 2, key).chat.completions.create(question("one"))),
        ),
      )
      const refused = ends.filter((end) => end !== undefined)
      expect(ends).toHaveLength(refused.length + 10)
      expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(["rate_limit_error"]))
    })

    it("calls in flight of a key are counted over all servers", async () => {
      const { key } = await makeKey({ concurrency: 2 })
      const leave = new AbortController()
      const long = question("word ".repeat(2_000), "svc-omni")
      const open = (index: number) =>
        clientOf(index, key).chat.completions.create(
          { ...long, stream: true },
          { signal: leave.signal },
        )
      await Promise.all([open(0), open(1)])
      const one = (index: number) =>
        errorOf(clientOf(index, key).chat.completions.create(question("one")))
      expect([(await one(0))?.code, (await one(1))?.code]).toEqual([
        "concurrency_exceeded",
        "concurrency_exceeded",
      ])
      leave.abort()
      await expect.poll(() => one(1), { timeout: 10_000 }).toBeUndefined()
    })

    it("a balance is never overdrawn, and each answer is charged once", async () => {
      const other = await addAccount(many.servers[0]!.url, session)
      // a search costs Rp2.5: this covers 40
      await query(
        "SELECT ledger_adjust('test', $1, 100000000 - balance_micros, 'test', now()) FROM ledger_account WHERE account_id = $1",
        [other.id],
      )
      const { key } = other
      const send = async (index: number) => {
        const reply = await fetch(`${many.servers[index]!.url}/v1/rerank`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "svc-rerank", query: "q", documents: ["a", "b"] }),
        })
        await reply.text()
        return reply.status
      }
      const statuses = await Promise.all(Array.from({ length: 200 }, (_, n) => send(n % 2)))
      const answered = statuses.filter((status) => status === 200).length
      expect([answered, statuses.filter((status) => status === 402).length]).toEqual([40, 160])
      expect(
        await query(
          `SELECT count(*)::int AS charges, sum(amount_micros)::text AS paid,
             (SELECT balance_micros::text FROM ledger_account WHERE account_id = $1) AS balance
           FROM ledger_transfer WHERE account_id = $1 AND type = 'charge'`,
          [other.id],
        ),
      ).toEqual([{ charges: 40, paid: "100000000", balance: "0" }])
    })

    it("a key revoked at one server is refused there at once, and soon by the other", async () => {
      const { key, id } = await makeKey({})
      const use = (index: number) =>
        errorOf(clientOf(index, key).chat.completions.create(question("one")))
      expect([await use(0), await use(1)]).toEqual([undefined, undefined])
      const revoked = await fetch(`${many.servers[0]!.url}/dashboard/keys/${id}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${session}` },
      })
      expect(revoked.ok).toBe(true)
      expect(await use(0)).toMatchObject({ status: 401 })
      await expect.poll(() => use(1), { timeout: 10_000 }).toMatchObject({ status: 401 })
    })

    it("a document that one server takes is read by a worker and found by the other", async () => {
      const { id } = await clientOf(0).files.create({
        file: await toFile(Buffer.from("the harbour of Makassar lies in the west"), "a.txt"),
        purpose: "knowledge" as "assistants",
      })
      await clientOf(1).files.waitForProcessing(id, { pollInterval: 50 })
      const { results } = (await clientOf(1).post("/retrieval", {
        body: { query: "harbour of Makassar" },
      })) as { readonly results: readonly { readonly file_id: string }[] }
      expect(results.map(({ file_id }) => file_id)).toContain(id)
    }, 60_000)

    it("of two workers one delivers the event of a batch, which outlives the other", async () => {
      const client = clientOf(0)
      const { secret } = (await client.post("/webhooks", {
        body: { url: receiver.url, events: ["batch.completed"] },
      })) as { readonly secret: string }
      const lines = Object.fromEntries(
        Array.from({ length: 100 }, (_, n) => [`n${n}`, question(`${n} one two`, "svc-omni")]),
      )
      const id = await startBatch(client, "/v1/chat/completions", lines)
      await expect
        .poll(async () => (await client.batches.retrieve(id)).status, { timeout: 30_000 })
        .toBe("in_progress")
      many.servers[2]!.process.kill("SIGKILL")
      const batch = await completedBatch(clientOf(1), id)
      expect(batch.request_counts).toEqual({ total: 100, completed: 100, failed: 0 })
      const text = await (await clientOf(1).files.content(batch.output_file_id!)).text()
      const names = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).custom_id)
      expect(names.toSorted()).toEqual(Object.keys(lines).toSorted())
      await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(1)
      const [{ body, headers }] = receiver.received as [Receiver["received"][number]]
      expect(webhooks.constructEvent(body, String(headers["svc-signature"]), secret)).toMatchObject(
        { event: "batch.completed" },
      )
    }, 90_000)

    it("and then the ledger, the blobs and the deliveries are sound", async () => {
      expect(await many.fsck()).toMatchObject({ code: 0 })
      expect(receiver.received).toHaveLength(1)
    }, 60_000)
  },
)
