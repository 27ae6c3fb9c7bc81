import { Effect } from "effect"
import { sql } from "kysely"
import Stripe from "stripe"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { status } from "../../testing/receiver.ts"
import { type ApiFixture, openApiFixture } from "./testing/api-fixture.ts"

const { webhooks } = new Stripe("sk_test_nobody")
let api: ApiFixture
beforeAll(async () => {
  api = await openApiFixture()
})
afterEach(() => api.empty())
afterAll(() => api?.close())

const settled = () => api.advance(0)

describe("a webhook", () => {
  it("is disabled by a 410; a test that succeeds makes it active again", async () => {
    const receiver = await api.receive()
    receiver.answer = status(410)
    const { id } = await api.register(receiver.url)
    await api.emit()
    await settled()
    expect(await api.show(id)).toMatchObject({ status: "disabled", last_error: "HTTP 410" })
    expect((await api.deliveries(id))[0]).toMatchObject({ status: "giveup" })
    await api.emit()
    await api.advance(3_600_000)
    expect(receiver.received).toHaveLength(1)
    receiver.answer = status(200)
    const { json } = await api.ask(`POST /v1/webhooks/${id}/test`)
    expect(json).toMatchObject({
      object: "webhook.delivery",
      event: "webhook.test",
      status: "pending",
      attempts: [],
    })
    await settled()
    expect(await api.show(id)).toMatchObject({ status: "active", last_error: null })
  })

  it("that was disabled by one call is made active by another that was under way, and that delivery has succeeded", async () => {
    const receiver = await api.receive()
    const held: import("node:http").ServerResponse[] = []
    receiver.answer = (reply) => void held.push(reply)
    const { id } = await api.register(receiver.url)
    for (let n = 0; n < 2; n++) await api.emit({ n })
    await Effect.runPromise(api.queue.advance(0))
    await vi.waitFor(() => expect(held).toHaveLength(2))
    status(410)(held[0]!)
    await vi.waitFor(async () => expect(await api.show(id)).toMatchObject({ status: "disabled" }))
    status(200)(held[1]!)
    await settled()
    expect(await api.show(id)).toMatchObject({ status: "active", last_error: null })
    const states = (await api.deliveries(id)).map(
      (one: { status: string; attempts: { status_code: number }[] }) => [
        one.status,
        one.attempts[0]?.status_code,
      ],
    )
    expect(states.sort()).toEqual([
      ["giveup", 410],
      ["succeeded", 200],
    ])
  })

  it("that is disabled gets each delivery that is sent again, once", async () => {
    const receiver = await api.receive()
    const { id } = await api.register(receiver.url)
    for (let n = 0; n < 6; n++) await api.emit({ n })
    await settled()
    const sent = await api.deliveries(id)
    receiver.answer = status(410)
    await api.ask(`POST /v1/webhooks/${id}/test`)
    await settled()
    const held: import("node:http").ServerResponse[] = []
    receiver.answer = (reply) => void held.push(reply)
    for (const { id: delivery } of sent)
      await api.ask(`POST /v1/webhooks/${id}/deliveries/${delivery}/redeliver`)
    await Effect.runPromise(api.queue.advance(0))
    await vi.waitFor(() => expect(held).toHaveLength(4))
    receiver.answer = status(500)
    for (const reply of held) status(500)(reply)
    await api.advance(3_600_000)
    expect(await api.deliveries(id)).toMatchObject([
      { event: "webhook.test" },
      ...Array(6).fill({
        status: "giveup",
        attempts: [{ status_code: 200 }, { status_code: 500 }],
      }),
    ])
  })

  it("is disabled after five days of nothing but failures, not earlier", async () => {
    const receiver = await api.receive()
    receiver.answer = status(500)
    const { id } = await api.register(receiver.url)
    for (let day = 0; day <= 5; day++) {
      expect(await api.show(id), `day ${day}`).toMatchObject({ status: "active" })
      await api.emit()
      await api.advance(0)
      await api.advance(86_400_000)
    }
    expect(await api.show(id)).toMatchObject({ status: "disabled" })
  })

  it("gets a test once, whatever comes of it", async () => {
    const receiver = await api.receive()
    receiver.answer = status(500)
    const { id } = await api.register(receiver.url, { events: ["batch.failed"] })
    await api.ask(`POST /v1/webhooks/${id}/test`)
    await api.advance(86_400_000)
    expect(receiver.received).toHaveLength(1)
    expect(receiver.received[0]?.headers["svc-event"]).toBe("webhook.test")
    expect((await api.deliveries(id))[0]).toMatchObject({
      status: "giveup",
      event: "webhook.test",
    })
  })

  it("gets what it asked for only, and nothing once it is deleted", async () => {
    const receiver = await api.receive()
    receiver.answer = status(500)
    const { id } = await api.register(receiver.url, { events: ["batch.failed"] })
    await api.emit({ id: 1 }, undefined, "batch.completed")
    await api.emit({ id: 2 }, undefined, "batch.failed")
    await settled()
    expect(receiver.received.map(({ body }) => JSON.parse(body).data.id)).toEqual([2])
    await api.ask(`DELETE /v1/webhooks/${id}`)
    await api.emit({ id: 3 }, undefined, "batch.failed")
    await api.advance(3_600_000)
    expect(receiver.received).toHaveLength(1)
    const { rows } = await sql<{ state: string }>`SELECT state FROM webhook_delivery`.execute(
      api.test.database.queries(),
    )
    expect(rows).toEqual([{ state: "giveup" }])
  })

  it("signs with both secrets for a day after a rotation, then with the new one", async () => {
    const receiver = await api.receive()
    const { id, secret: old } = await api.register(receiver.url)
    const { json } = await api.ask(`POST /v1/webhooks/${id}/rotate`)
    expect(json).toMatchObject({
      id,
      object: "webhook",
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9]{32}$/),
    })
    await api.emit()
    await settled()
    await api.advance(86_400_000)
    await api.emit()
    await settled()
    const verifies = (n: number, secret: string) => {
      const { body, headers } = receiver.received[n]!
      const at = Number(/t=(\d+)/.exec(String(headers["svc-signature"]))?.[1]) * 1000
      try {
        return (
          webhooks.constructEvent(
            body,
            String(headers["svc-signature"]),
            secret,
            300,
            undefined,
            at,
          ) !== undefined
        )
      } catch {
        return false
      }
    }
    expect([
      verifies(0, old),
      verifies(0, json.secret),
      verifies(1, old),
      verifies(1, json.secret),
    ]).toEqual([true, true, false, true])
  })

  it("that is slow delays no other one, not even on the same host, and gets a few calls at once", async () => {
    const receiver = await api.receive()
    const held: import("node:http").ServerResponse[] = []
    receiver.answer = (reply, { path }) => void (path === "/hook" ? held.push(reply) : reply.end())
    const slow = await api.register(receiver.url)
    for (let n = 0; n < 15; n++) await api.emit({ n })
    await api.register(`http://${receiver.host}/fast`)
    for (let n = 0; n < 5; n++) await api.emit({ n })
    const arrived = (path: string) => receiver.received.filter((one) => one.path === path).length
    await vi.waitFor(async () => {
      await Effect.runPromise(api.queue.advance(0))
      expect([arrived("/fast"), held.length]).toEqual([5, 4])
    })
    expect(arrived("/hook")).toBe(4)
    receiver.answer = (reply) => void reply.end()
    for (const reply of held) reply.end()
    await Effect.runPromise(api.drain)
    expect(
      new Set((await api.deliveries(slow.id)).map((one: { status: string }) => one.status)),
    ).toEqual(new Set(["succeeded"]))
    expect(arrived("/hook")).toBe(20)
  })
})
