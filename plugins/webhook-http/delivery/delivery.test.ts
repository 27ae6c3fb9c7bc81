import { Effect } from "effect"
import { sql } from "kysely"
import Stripe from "stripe"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { PortError } from "../../../core/index.ts"
import { makeOutbound } from "../../../runtime/services/outbound/outbound.ts"
import { status } from "../../../testing/receiver.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"
import { upkeep } from "../upkeep.ts"

const { webhooks } = new Stripe("sk_test_nobody")
let api: ApiFixture
beforeAll(async () => {
  api = await openApiFixture()
})
afterEach(() => api.empty())
afterAll(() => api?.close())

const nowSeconds = () => Math.floor(api.clock.nowMs() / 1000)
const settled = () => api.advance(0)

describe("a delivery", () => {
  it("is the exact body, signed, with the contract's headers, and is on record to the byte", async () => {
    const receiver = await api.receive()
    const { id, secret } = await api.register(receiver.url)
    await api.emit({ id: "batch-1", note: 'é\u2028"\u0000', total_cost_idr: 0.1 })
    await settled()
    const [got] = receiver.received
    expect(got?.body).toBe(
      `{"event":"batch.completed","created":${nowSeconds()},"data":{"id":"batch-1","note":"é\u2028\\"\\u0000","total_cost_idr":0.1}}`,
    )
    expect(got?.headers).toMatchObject({
      "content-type": "application/json",
      "svc-event": "batch.completed",
      "user-agent": "Svc-Webhooks/1.0",
    })
    expect(
      webhooks.constructEvent(
        got!.body,
        String(got!.headers["svc-signature"]),
        secret,
        300,
        undefined,
        api.clock.nowMs(),
      ),
    ).toMatchObject({ event: "batch.completed" })
    expect(await api.deliveries(id)).toEqual([
      {
        id: expect.stringMatching(/^whd-/),
        object: "webhook.delivery",
        event: "batch.completed",
        status: "succeeded",
        request_body: got?.body,
        attempts: [
          {
            at: nowSeconds(),
            status_code: 200,
            error: null,
            duration_ms: 0,
            response_body: "thanks",
          },
        ],
        next_attempt_at: null,
      },
    ])
    expect(await api.show(id)).toMatchObject({
      status: "active",
      last_delivery_at: nowSeconds(),
      last_error: null,
    })
  })

  it("is retried after 5 s, 30 s, 5 min and 30 min, not before, and given up after the fifth failure", async () => {
    const receiver = await api.receive()
    receiver.answer = status(503)
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    for (const [n, waitMs] of [5_000, 30_000, 300_000, 1_800_000].entries()) {
      expect((await api.deliveries(id))[0]).toMatchObject({
        status: "pending",
        next_attempt_at: Math.floor((api.clock.nowMs() + waitMs) / 1000),
      })
      await api.advance(waitMs - 1)
      expect(receiver.received).toHaveLength(n + 1)
      await api.advance(1)
      expect(receiver.received).toHaveLength(n + 2)
    }
    const [delivery] = await api.deliveries(id)
    expect(delivery).toMatchObject({ status: "giveup", next_attempt_at: null })
    expect(
      delivery.attempts.map(
        (one: { status_code: number; error: string; response_body: string }) => [
          one.status_code,
          one.error,
          one.response_body,
        ],
      ),
    ).toEqual(Array(5).fill([503, "HTTP 503", "no\ufffd 503"]))
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(await api.show(id)).toMatchObject({ status: "active", last_error: "HTTP 503" })
    await api.advance(86_400_000)
    expect(receiver.received).toHaveLength(5)
  })

  it("succeeds in the end, and the error goes; it can be sent again after that", async () => {
    const receiver = await api.receive()
    receiver.answer = status(500)
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    expect(await api.show(id)).toMatchObject({ last_error: "HTTP 500" })
    receiver.answer = status(204)
    await api.advance(5_000)
    expect(await api.show(id)).toMatchObject({ last_error: null, last_delivery_at: nowSeconds() })
    const [delivery] = await api.deliveries(id)
    const { status: code, json } = await api.ask(
      `POST /v1/webhooks/${id}/deliveries/${delivery.id}/redeliver`,
    )
    expect([code, json]).toEqual([
      200,
      { ...delivery, status: "pending", next_attempt_at: nowSeconds() },
    ])
    await settled()
    expect((await api.deliveries(id))[0]).toMatchObject({
      status: "succeeded",
      attempts: [{ status_code: 500 }, { status_code: 204 }, { status_code: 204 }],
    })
    expect(receiver.received).toHaveLength(3)
  })

  it("that waits is sent again at once when that is asked for; its old attempt is void", async () => {
    const receiver = await api.receive()
    receiver.answer = status(500)
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    receiver.answer = status(200)
    const [{ id: delivery }] = await api.deliveries(id)
    await api.ask(`POST /v1/webhooks/${id}/deliveries/${delivery}/redeliver`)
    await api.advance(3_600_000)
    expect(receiver.received).toHaveLength(2)
  })

  it("that is sent again while an attempt is under way has both attempts on record", async () => {
    const receiver = await api.receive()
    const open: import("node:http").ServerResponse[] = []
    receiver.answer = (reply) => void open.push(reply)
    const { id } = await api.register(receiver.url)
    await api.emit()
    await Effect.runPromise(api.queue.advance(0))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    const [{ id: delivery }] = await api.deliveries(id)
    await api.ask(`POST /v1/webhooks/${id}/deliveries/${delivery}/redeliver`)
    await Effect.runPromise(api.queue.advance(0))
    await vi.waitFor(() => expect(open).toHaveLength(2))
    status(500)(open[0]!)
    await vi.waitFor(async () =>
      expect(await api.show(id)).toMatchObject({ last_error: "HTTP 500" }),
    )
    status(200)(open[1]!)
    await settled()
    expect(await api.deliveries(id)).toMatchObject([
      { status: "succeeded", attempts: [{ status_code: 500 }, { status_code: 200 }] },
    ])
    expect(await api.show(id)).toMatchObject({ last_error: null })
  })

  it("does not follow redirects, and reads 4 kB of an answer", async () => {
    const receiver = await api.receive()
    receiver.answer = (reply) => {
      reply.writeHead(302, { location: receiver.url })
      reply.end("x".repeat(100_000))
    }
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    const [{ attempts }] = await api.deliveries(id)
    expect(attempts).toEqual([
      expect.objectContaining({
        status_code: 302,
        error: "HTTP 302 (redirects are not followed)",
        response_body: "x".repeat(4_096),
      }),
    ])
    expect(receiver.received).toHaveLength(1)
  })

  it("to nobody is an error, and not a word about why beyond the code", async () => {
    const receiver = await api.receive()
    const { id } = await api.register(receiver.url)
    await receiver.close()
    await api.emit()
    await settled()
    const [{ attempts }] = await api.deliveries(id)
    expect(attempts).toEqual([
      {
        at: nowSeconds(),
        status_code: null,
        error: "The connection failed (ECONNREFUSED).",
        duration_ms: 0,
        response_body: null,
      },
    ])
    receiver.close = async () => {}
  })

  it("to a name that leads to a private address is refused when it is sent", async () => {
    const before = api.outside.outbound
    api.outside.outbound = makeOutbound([], async () => [
      { address: "93.184.216.34", family: 4 },
      { address: "10.0.0.7", family: 4 },
    ])
    const { id } = await api.register("https://hooks.example.com/in")
    await api.emit()
    await settled()
    const [{ attempts, status: state }] = await api.deliveries(id)
    expect([state, attempts[0].status_code, attempts[0].error]).toEqual([
      "pending",
      null,
      "It leads to an address that is not on the public internet.",
    ])
    api.outside.outbound = before
  })

  it("to a port that is no longer allowed is refused when it is sent", async () => {
    const before = api.outside.outbound
    api.outside.outbound = makeOutbound([], undefined, ["8443"])
    const { id } = await api.register("https://hooks.example.com:8443/in")
    api.outside.outbound = makeOutbound([])
    await api.emit()
    await settled()
    const [{ attempts, status: state }] = await api.deliveries(id)
    expect([state, attempts[0].status_code, attempts[0].error]).toEqual([
      "pending",
      null,
      "It must not have the port 8443: ports 443 and 80 are called.",
    ])
    api.outside.outbound = before
  })

  it("that was sent but could not be written down is sent again", async () => {
    const receiver = await api.receive()
    const { id } = await api.register(receiver.url)
    const { transaction } = api.deps.database
    const failing = () => Effect.fail(new PortError({ port: "database", message: "gone" }))
    receiver.answer = (reply) => {
      ;(api.deps.database as { transaction: unknown }).transaction = failing
      reply.end()
    }
    await api.emit()
    await settled()
    ;(api.deps.database as { transaction: unknown }).transaction = transaction
    receiver.answer = (reply) => void reply.end()
    expect((await api.deliveries(id))[0]).toMatchObject({ status: "pending", attempts: [] })
    await api.advance(600_000)
    expect((await api.deliveries(id))[0]).toMatchObject({
      status: "succeeded",
      attempts: [{ status_code: 200 }],
    })
    expect(receiver.received.map(({ body }) => body)).toEqual([
      receiver.received[0]?.body,
      receiver.received[0]?.body,
    ])
  })

  it("whose job was lost gets a new one; an old one is forgotten", async () => {
    const receiver = await api.receive()
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    await sql`UPDATE webhook_delivery SET state = 'pending', next_attempt_at = ${new Date(api.clock.nowMs())}`.execute(
      api.test.database.queries(),
    )
    await sql`UPDATE webhook_delivery SET tries = 0, round = 5`.execute(api.test.database.queries())
    await api.advance(16 * 60_000)
    expect(receiver.received).toHaveLength(1)
    expect(await Effect.runPromise(upkeep(api.deps))).toBe(1)
    await settled()
    expect(receiver.received).toHaveLength(2)
    await api.advance(31 * 86_400_000)
    await Effect.runPromise(upkeep(api.deps))
    expect(await api.deliveries(id)).toEqual([])
  })
})
