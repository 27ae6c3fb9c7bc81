import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { fakeStorage } from "../../../testing/index.ts"
import { cancelBatch } from "../api/batch-store.ts"
import { makeDoor, noOpenCall, patient, useWorkers } from "../testing/start-worker.ts"
import { lineMicros } from "../testing/target.ts"

const { open, work, ended, running } = useWorkers()

describe("a batch", () => {
  it("that is cancelled begins no further line; those that run are paid, and nobody gets them", async () => {
    const door = makeDoor()
    const begun: number[] = []
    const fixture = await open({
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
    await fixture.cancel(id)
    // the heartbeat has seen the cancel when it has renewed the lease after it
    await vi.waitFor(
      async () =>
        expect((await fixture.batch(id)).lease_until?.getTime() ?? 0).toBeGreaterThan(
          (await fixture.batch(id)).ended_at!.getTime() + fixture.deps.limits.leaseMs,
        ),
      patient,
    )
    door.open()
    await vi.waitFor(
      async () =>
        expect((await fixture.calls()).filter(({ state }) => state === "settled")).toHaveLength(16),
      patient,
    )
    expect(begun).toHaveLength(16)
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 8,
      cost_micros: 16n * lineMicros,
      output_file_id: null,
    })
    expect(await fixture.events()).toEqual([])
  })

  it("that is cancelled as it ends leaves nothing", async () => {
    const storage = fakeStorage()
    let id = ""
    const put: typeof storage.put = (key, body, maxBytes) =>
      Effect.tap(storage.put(key, body, maxBytes), () => Effect.promise(() => fixture.cancel(id)))
    const fixture = await open({ storage: { ...storage, put } })
    id = await fixture.create("a", 10)
    work()
    expect(await ended(id)).toMatchObject({
      status: "cancelled",
      output_file_id: null,
      cost_micros: 10n * lineMicros,
    })
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(await fixture.events()).toEqual([])
  })

  /** Eight lines have run, eight are held back at the door. */
  const runningWithDoor = async () => {
    const door = makeDoor()
    const begun: number[] = []
    const fixture = await open({
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
    return { fixture, id, door, begun }
  }
  it("that is cancelled in this process begins none from that moment on", async () => {
    const { fixture, id, door, begun } = await runningWithDoor()
    await Effect.runPromise(cancelBatch(fixture.deps, { account: "a", mode: "live" }, id))
    door.open()
    await noOpenCall(fixture)
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(begun).toHaveLength(16)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 8,
      cost_micros: 16n * lineMicros,
    })
  })

  it("that is cancelled in another process pays for no line that begins before this one knows", async () => {
    const { fixture, id, door, begun } = await runningWithDoor()
    await fixture.cancel(id)
    door.open()
    await vi.waitFor(
      async () => expect((await fixture.calls()).length).toBeGreaterThan(16),
      patient,
    )
    await noOpenCall(fixture)
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
