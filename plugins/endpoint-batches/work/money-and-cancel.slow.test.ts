import { Effect } from "effect"
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { cancelBatch } from "../api/batch-store.ts"
import { hasEnded, isRunning, makeDoor, patient, startWorker } from "../testing/start-worker.ts"
import { lineMicros } from "../testing/target.ts"
import {
  openWorkFixture,
  type WorkFixture,
  type WorkFixtureOptions,
} from "../testing/work-fixture.ts"

// the server of the test databases may have to start first
beforeAll(async () => (await openWorkFixture()).close(), 120_000)

let fixture: WorkFixture
let stop: (() => Promise<void>) | undefined
afterEach(async () => {
  await stop?.()
  await fixture?.close()
})

const open = async (options: WorkFixtureOptions = {}) => {
  fixture = await openWorkFixture(options)
  return fixture
}
const work = () => {
  stop = startWorker(fixture)
}
const ended = (id: string) => hasEnded(fixture, id)
const running = (id: string, atLeast = 0) => isRunning(fixture, id, atLeast)
const isOver = () =>
  vi.waitFor(
    async () => expect((await fixture.calls()).filter(({ state }) => state === "open")).toEqual([]),
    patient,
  )

describe("a batch", () => {
  it("whose money is held by lines that run waits for them: what they leave covers the others", async () => {
    const { room } = await open({ limits: { linesAtOnce: 16 } })
    room.set("thrifty", 3)
    room.set("poor", 0)
    const [thrifty, poor] = [await fixture.create("thrifty", 100), await fixture.create("poor", 40)]
    work()
    expect(await ended(poor)).toMatchObject({ status: "completed", completed: 0, failed: 40 })
    expect(await ended(thrifty)).toMatchObject({
      status: "completed",
      completed: 100,
      failed: 0,
      cost_micros: 100n * lineMicros,
    })
  })

  it("whose money another key of its account holds waits for that, too", async () => {
    const { room, identity, db } = await open({
      limits: { linesAtOnce: 16 },
      run: (n) => Effect.delay(Effect.succeed({ n }), 20),
    })
    room.set("thrifty", 3)
    identity.add({ key: "second", keyId: "key_second", account: "thrifty" })
    const [one, other] = [await fixture.create("thrifty", 60), await fixture.create("thrifty", 60)]
    await db
      .updateTable("batches_batch")
      .set({ key_id: "key_second" })
      .where("id", "=", other)
      .execute()
    work()
    for (const id of [one, other])
      expect(await ended(id)).toMatchObject({ status: "completed", completed: 60, failed: 0 })
  })

  it("whose money a call elsewhere holds waits for its end, or is cancelled", async () => {
    const { room, deps: parts } = await open()
    room.set("thrifty", 1)
    const [id, given] = [await fixture.create("thrifty", 5), await fixture.create("thrifty", 5)]
    const caller = await Effect.runPromise(parts.identity.resume("key_thrifty"))
    const call = parts.ids.call()
    await Effect.runPromise(
      parts.billing.admit({
        id: call,
        caller,
        endpoint: "chat",
        requestId: "r",
        holdMicros: lineMicros,
        counts: "all",
      }),
    )
    const looked = vi.spyOn(parts.billing, "balance")
    work()
    await vi.waitFor(() => expect(looked.mock.calls.length).toBeGreaterThan(10), patient)
    expect([await fixture.batch(id), await fixture.batch(given)]).toMatchObject([
      { failed: 0 },
      { failed: 0 },
    ])
    await fixture.cancel(given)
    await Effect.runPromise(
      parts.billing.settle([
        { id: call, outcome: "settled", costMicros: lineMicros, usage: {}, httpStatus: 200 },
      ]),
    )
    expect(await ended(id)).toMatchObject({ status: "completed", completed: 5, failed: 0 })
    expect(await ended(given)).toMatchObject({ status: "cancelled", completed: 0, failed: 0 })
  })

  it("that waits for money can be cancelled", async () => {
    const door = makeDoor()
    const { room } = await open({ run: (n) => Effect.as(door.pass, { n }) })
    room.set("thrifty", 1)
    const id = await fixture.create("thrifty", 20)
    work()
    await running(id)
    await vi.waitFor(async () => expect(await fixture.calls()).toHaveLength(1), patient)
    await fixture.cancel(id)
    door.open()
    await isOver()
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    // others may have begun before, or before the worker heard of it: those are free
    const settled = (await fixture.calls()).filter(({ state }) => state === "settled").length
    expect(settled).toBeLessThanOrEqual(8)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 0,
      cost_micros: BigInt(settled) * lineMicros,
    })
  })

  /** Eight lines have run, eight are held back at the door. */
  const runningWithDoor = async () => {
    const door = makeDoor()
    const begun: number[] = []
    await open({
      limits: { leaseMs: 60_000 },
      run: (n) =>
        Effect.suspend(() => {
          begun.push(n)
          return Effect.as(n < 8 ? Effect.void : door.pass, { n })
        }),
    })
    const id = await fixture.create("a", 500)
    work()
    await running(id, 8)
    await vi.waitFor(() => expect(begun).toHaveLength(16), patient)
    return { id, door, begun }
  }
  it("that is cancelled in this process begins none from that moment on", async () => {
    const { id, door, begun } = await runningWithDoor()
    await Effect.runPromise(cancelBatch(fixture.deps, { account: "a", mode: "live" }, id))
    door.open()
    await isOver()
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(begun).toHaveLength(16)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 8,
      cost_micros: 16n * lineMicros,
    })
  })

  it("that is cancelled in another process pays for no line that begins before this one knows", async () => {
    const { id, door, begun } = await runningWithDoor()
    await fixture.cancel(id)
    door.open()
    await vi.waitFor(
      async () => expect((await fixture.calls()).length).toBeGreaterThan(16),
      patient,
    )
    await isOver()
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    const states = (await fixture.calls()).map(({ state }) => state)
    expect(states.filter((state) => state === "settled")).toHaveLength(16)
    expect(states.filter((state) => state === "voided").length).toBe(begun.length - 16)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 8,
      cost_micros: 16n * lineMicros,
    })
  })
})
