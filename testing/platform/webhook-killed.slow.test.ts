import OpenAI from "openai"
import Stripe from "stripe"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startBatch } from "../batch-client.ts"
import { type ManyServers, startMany } from "../many-servers.ts"
import { missing } from "../proxies.ts"
import { openReceiver, type Receiver } from "../receiver.ts"

const reason = missing("nginx")
const { webhooks } = new Stripe("sk_test_nobody")

describe.skipIf(reason)(
  `a worker that is killed while it delivers a webhook ${reason ?? ""}`,
  () => {
    let receiver: Receiver
    let many: ManyServers
    beforeAll(async () => {
      receiver = await openReceiver()
      many = await startMany({
        roles: ["api", "worker", "worker"],
        env: { RAKIT_WEBHOOK_ALLOW_HOSTS: receiver.host },
      })
    }, 120_000)
    afterAll(async () => {
      await many?.close()
      await receiver?.close()
    })

    it("another worker delivers it again, with the same body and id", async () => {
      const client = new OpenAI({ baseURL: `${many.url}/v1`, apiKey: many.apiKey })
      const { id, secret } = (await client.post("/webhooks", {
        body: { url: receiver.url, events: ["batch.completed"] },
      })) as { readonly id: string; readonly secret: string }
      // the only worker takes it, and its receiver does not answer
      await many.servers[2]!.stop()
      receiver.answer = () => {}
      const batch = await startBatch(client, "/v1/chat/completions", {
        one: { model: "svc-lyt", messages: [{ role: "user", content: "one" }] },
      })
      await expect.poll(() => receiver.open, { timeout: 30_000 }).toBe(1)
      await many.restart(2, "SIGTERM")
      expect(await many.servers[1]!.stop("SIGKILL")).toBe("SIGKILL")
      await expect.poll(() => receiver.open, { timeout: 10_000 }).toBe(0)
      receiver.answer = (reply) => void reply.end("thanks")

      // its lease is 30 s
      await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(2)
      const [lost, again] = receiver.received as [
        Receiver["received"][number],
        Receiver["received"][number],
      ]
      expect(again.body).toBe(lost.body)
      for (const { body, headers } of [lost, again])
        expect(
          webhooks.constructEvent(body, String(headers["svc-signature"]), secret),
        ).toMatchObject({ event: "batch.completed", data: { id: batch } })
      const deliveries = async () =>
        (
          (await client.get(`/webhooks/${id}/deliveries`)) as {
            readonly data: readonly { readonly status: string; readonly event: string }[]
          }
        ).data
      await expect
        .poll(deliveries, { timeout: 10_000 })
        .toMatchObject([{ status: "succeeded", event: "batch.completed" }])
    }, 150_000)

    it("and then the deliveries and the queue are sound", async () => {
      expect(await many.fsck()).toMatchObject({ code: 0 })
      expect(receiver.received).toHaveLength(2)
    }, 60_000)
  },
)
