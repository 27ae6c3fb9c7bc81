import { Effect, Stream } from "effect"
import { type RawBuilder, sql } from "kysely"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import type { Queue } from "../../core/index.ts"
import { deliveryCheck } from "./check.ts"
import type { WebhookDeps } from "./deps.ts"
import { type ApiFixture, openApiFixture } from "./testing/api-fixture.ts"

const run = Effect.runPromise
let api: ApiFixture
beforeAll(async () => {
  api = await openApiFixture()
})
afterEach(async () => {
  await run(api.drain)
  await api.empty()
})
afterAll(() => api?.close())

const query = async <R>(text: RawBuilder<R>) =>
  (await text.execute(api.test.database.queries())).rows
const findings = (fixture: WebhookDeps = api.deps) =>
  run(Stream.runCollect(deliveryCheck(fixture).findings(() => {})))
/** Empties the queue. */
const emptied = (): WebhookDeps => ({
  ...api.deps,
  queue: { ...api.queue, held: () => Effect.succeed(new Set<string>()) },
})

/** A delivery that failed once and waits for its second attempt. */
const failOnce = async () => {
  const receiver = await api.receive()
  receiver.answer = (reply) => {
    reply.statusCode = 503
    reply.end()
  }
  const { id } = await api.register(receiver.url)
  await api.emit()
  const fresh = await findings()
  await api.advance(0)
  const [delivery] = await api.deliveries(id)
  return { receiver, webhook: id, delivery: delivery.id as string, fresh }
}

it("finds nothing where deliveries wait, are retried, come back later, or are over", async () => {
  const { receiver, webhook, fresh } = await failOnce()
  expect([fresh, await findings()]).toEqual([[], []])
  await api.advance(5_000)
  expect(await findings()).toEqual([])
  receiver.answer = (reply) => void reply.end()
  await run(api.drain)
  expect((await api.deliveries(webhook))[0].status).toBe("succeeded")
  expect(await findings()).toEqual([])
})

it("an attempt that was deferred because its webhook was busy still counts, however often", async () => {
  const receiver = await api.receive()
  const held: import("node:http").ServerResponse[] = []
  receiver.answer = (reply) => void held.push(reply)
  await api.register(receiver.url)
  const many = 150
  for (let n = 0; n < many; n++) await api.emit()
  let looked = 0
  for (let turn = 0; turn < 3; turn++) {
    await run(api.queue.advance(2_000))
    await run(Effect.promise(() => new Promise((done) => setTimeout(done, 20))))
    const found = await run(
      Stream.runCollect(
        deliveryCheck(api.deps).findings((things) => {
          looked += things
        }),
      ),
    )
    expect(found).toEqual([])
  }
  expect(looked).toBe(3 * many)
  receiver.answer = (reply) => void reply.end()
  for (const reply of held) reply.end()
})

it("queues a delivery again whose job is gone", async () => {
  const { delivery, webhook } = await failOnce()
  const sent: unknown[] = []
  const send: Queue["send"] = (_, payload, options) =>
    Effect.sync(() => void sent.push([payload, options]))
  const [finding, ...rest] = await findings({ ...emptied(), queue: { ...emptied().queue, send } })
  expect(rest).toEqual([])
  expect(finding).toMatchObject({
    subject: `delivery ${delivery} of webhook ${webhook} of account acct_ada (live)`,
    problem: "it waits, but nothing in the queue will make its attempt",
    remedy: "it is queued again",
  })
  await run(finding!.repair!)
  expect(sent).toEqual([
    [
      expect.objectContaining({ delivery, round: 0, tries: 1, deferred: 0 }),
      { key: `${delivery}/0/1/0`, delayMs: 5_000 },
    ],
  ])
})

it("a delivery that changed between the two queries is no finding", async () => {
  await failOnce()
  const goesOn: WebhookDeps = {
    ...api.deps,
    queue: {
      ...api.queue,
      held: () =>
        Effect.promise(() =>
          query(sql`UPDATE webhook_delivery SET tries = tries + 1`).then(() => new Set<string>()),
        ),
    },
  }
  expect(await findings(goesOn)).toEqual([])
})

it("gives up what waits for a webhook that is gone", async () => {
  const { delivery, webhook } = await failOnce()
  await query(sql`DELETE FROM webhook_registration WHERE id = ${webhook}`)
  expect(await findings()).toEqual([])
  await query(sql`UPDATE webhook_delivery SET created_at = created_at - interval '1 minute'`)
  const [finding, ...rest] = await findings()
  expect(rest).toEqual([])
  expect(finding).toMatchObject({
    subject: `delivery ${delivery} of webhook ${webhook}`,
    problem: "it waits, but its webhook is gone",
    remedy: "it is given up",
  })
  for (let time = 0; time < 2; time++) await run(finding!.repair!)
  expect([await findings(), await query(sql`SELECT state FROM webhook_delivery`)]).toEqual([
    [],
    [{ state: "giveup" }],
  ])
})
