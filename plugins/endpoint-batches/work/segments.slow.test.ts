import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { apiError } from "../../../core/index.ts"
import { fakeStorage } from "../../../testing/index.ts"
import { makeDoor, patient, useWorkers } from "../testing/start-worker.ts"
import { numbers, numbersOf } from "../testing/work-fixture.ts"

const { open, work, ended, running } = useWorkers()

describe("large answers", () => {
  it("go through parts, with one worker or with the next, and come out in order", async () => {
    const door = makeDoor()
    const text = "x".repeat(1_200_000)
    const puts: string[] = []
    const storage = fakeStorage()
    const put: typeof storage.put = (key, body, maxBytes) =>
      Effect.tap(storage.put(key, body, maxBytes), () => Effect.sync(() => puts.push(key)))
    const fixture = await open({
      storage: { ...storage, put },
      run: (n) => {
        if (n === 2) return Effect.fail(apiError("context_length_exceeded"))
        return n < 9 ? Effect.succeed({ n, text }) : Effect.as(door.pass, { n })
      },
    })
    const id = await fixture.create("a", 14)
    const stop = work()
    await running(id, 8)
    await vi.waitFor(
      async () => expect(await fixture.rowsOf("batches_part")).toBeGreaterThan(1),
      patient,
    )
    await stop()
    expect((await fixture.batch(id)).done_through).toBeGreaterThan(6)
    door.open()
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "completed", completed: 13, failed: 1 })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(
      numbers(14).filter((n) => n !== 2),
    )
    expect(numbersOf(await fixture.linesOf(row.error_file_id))).toEqual([2])
    expect(puts.filter((key) => key.startsWith("batches/")).length).toBeGreaterThan(1)
    await vi.waitFor(
      async () =>
        expect([
          await fixture.rowsOf("batches_line"),
          await fixture.rowsOf("batches_part"),
          await fixture.parts(),
        ]).toEqual([0, 0, []]),
      patient,
    )
  }, 60_000)

  it("stay where a part was recorded although the answer of its commit was lost", async () => {
    const door = makeDoor()
    const text = "x".repeat(1_200_000)
    const storage = fakeStorage()
    let isLost = false
    const put: typeof storage.put = (key, body, maxBytes) =>
      Effect.tap(storage.put(key, body, maxBytes), () =>
        Effect.sync(() => {
          // the second blob of the first part: its transaction is the next one
          if (isLost || !/^batches\/.*-error/.test(key)) return
          isLost = true
          fixture.crashes.set("lost")
        }),
      )
    const fixture = await open({
      storage: { ...storage, put },
      run: (n) => (n < 9 ? Effect.succeed({ n, text }) : Effect.as(door.pass, { n })),
    })
    const id = await fixture.create("a", 12)
    work()
    await vi.waitFor(
      () => expect(fixture.log.lines.map(({ event }) => event)).toContain("batch.waits_for_outage"),
      patient,
    )
    fixture.crashes.setAway(false)
    door.open()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "completed", completed: 12, failed: 0 })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(12))
  }, 60_000)
})
