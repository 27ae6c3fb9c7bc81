import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { makeDoor, noOpenCall, patient, useWorkers } from "../testing/start-worker.ts"
import { lineMicros } from "../testing/target.ts"

const { open, work, ended, running } = useWorkers()

describe("a batch", () => {
  it("whose money is held by lines that run waits for them: what they leave covers the others", async () => {
    const fixture = await open({ limits: { linesAtOnce: 16 } })
    fixture.maxHolds.set("thrifty", 3)
    fixture.maxHolds.set("poor", 0)
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
    const fixture = await open({
      limits: { linesAtOnce: 16 },
      run: (n) => Effect.delay(Effect.succeed({ n }), 20),
    })
    fixture.maxHolds.set("thrifty", 3)
    fixture.identity.add({ key: "second", keyId: "key_second", account: "thrifty" })
    const [one, other] = [await fixture.create("thrifty", 60), await fixture.create("thrifty", 60)]
    await fixture.db
      .updateTable("batches_batch")
      .set({ key_id: "key_second" })
      .where("id", "=", other)
      .execute()
    work()
    for (const id of [one, other])
      expect(await ended(id)).toMatchObject({ status: "completed", completed: 60, failed: 0 })
  })

  it("whose money a call elsewhere holds waits for its end, or is cancelled", async () => {
    const fixture = await open()
    const { deps } = fixture
    fixture.maxHolds.set("thrifty", 1)
    const [id, given] = [await fixture.create("thrifty", 5), await fixture.create("thrifty", 5)]
    const caller = await Effect.runPromise(deps.identity.resume("key_thrifty"))
    const call = deps.ids.call()
    await Effect.runPromise(
      deps.billing.admit({
        id: call,
        caller,
        endpoint: "chat",
        requestId: "r",
        holdMicros: lineMicros,
        counts: "all",
      }),
    )
    const looked = vi.spyOn(deps.billing, "balance")
    work()
    await vi.waitFor(() => expect(looked.mock.calls.length).toBeGreaterThan(10), patient)
    expect([await fixture.batch(id), await fixture.batch(given)]).toMatchObject([
      { failed: 0 },
      { failed: 0 },
    ])
    await fixture.cancel(given)
    await Effect.runPromise(
      deps.billing.settle([
        { id: call, outcome: "settled", costMicros: lineMicros, usage: {}, httpStatus: 200 },
      ]),
    )
    expect(await ended(id)).toMatchObject({ status: "completed", completed: 5, failed: 0 })
    expect(await ended(given)).toMatchObject({ status: "cancelled", completed: 0, failed: 0 })
  })

  it("that waits for money can be cancelled", async () => {
    const door = makeDoor()
    const fixture = await open({ run: (n) => Effect.as(door.pass, { n }) })
    fixture.maxHolds.set("thrifty", 1)
    const id = await fixture.create("thrifty", 20)
    work()
    await running(id)
    await vi.waitFor(async () => expect(await fixture.calls()).toHaveLength(1), patient)
    await fixture.cancel(id)
    door.open()
    await noOpenCall(fixture)
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    // others may have begun before the worker knew of the cancel: those are free
    const settled = (await fixture.calls()).filter(({ state }) => state === "settled").length
    expect(settled).toBeLessThanOrEqual(8)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 0,
      cost_micros: BigInt(settled) * lineMicros,
    })
  })
})
