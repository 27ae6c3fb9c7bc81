import { Effect, Stream } from "effect"
import { sql } from "kysely"
import { describe, expect, it } from "vitest"
import { openCheckFixture } from "../testing/check-fixture.ts"
import { segmentKey } from "../work/segments.ts"

const hourMs = 3_600_000
const { checked, work, batch, row, time, subject, findings, texts, repairAll, change, put } =
  await openCheckFixture()

describe("a batch under way", () => {
  const key = () => segmentKey({ id: batch, epoch: row.epoch }, 2, "output")
  /** Restores the state after four lines: two in a segment, two in rows. */
  const begin = async () => {
    await change({
      status: "in_progress",
      ended_at: null,
      completed: 3,
      failed: 1,
      done_through: 2,
      cost_micros: row.cost_micros,
    })
    await put(key(), "one\ntwo\n")
    await sql`INSERT INTO batches_part VALUES (${batch}, 'output', 2, ${key()}, 8)`.execute(
      work.deps.database.queries(),
    )
    await sql`INSERT INTO batches_line VALUES (${batch}, 3, true, 'x'), (${batch}, 4, false, 'y')`.execute(
      work.deps.database.queries(),
    )
  }
  const end = async () => {
    await change({
      status: "completed",
      ended_at: row.ended_at,
      completed: row.completed,
      failed: row.failed,
      done_through: row.done_through,
    })
    await work.db.deleteFrom("batches_part").execute()
    await work.db.deleteFrom("batches_line").execute()
    await Effect.runPromise(work.deps.storage.remove(key()))
  }

  it("has each line once, in parts or waiting for one", async () => {
    await begin()
    expect(await findings()).toEqual([])
    await change({ completed: 4 })
    expect(await texts()).toEqual([
      `${subject}: it counts 4 answers and 1 failures; there are 3 and 1 (-)`,
    ])
    await change({ completed: 3, done_through: 3 })
    expect(await texts()).toEqual([
      `${subject}: line 3 waits for its part, but lines up to 3 lie in parts (-)`,
    ])
    await end()
  })

  it("is named when its time was over long ago, and no worker has ended it", async () => {
    await begin()
    time.aheadMs = 25 * hourMs - 60_000
    expect(await findings()).toEqual([])
    time.aheadMs = 25 * hourMs + 60_000
    const overdue = (status: string) =>
      `${subject}: it is still ${status}, but its time was over at ${row.deadline_at.toISOString()}: no worker has ended it (-)`
    expect(await texts()).toEqual([overdue("in_progress")])
    await change({ status: "validating" })
    expect(await texts()).toEqual([overdue("validating")])
    await end()
  })

  it("has its parts", async () => {
    await begin()
    await put(key(), "one\ntw\n")
    expect(await texts()).toEqual([
      `${subject}: its output part 2 (${key()}) has 7 bytes, not 8 (-)`,
    ])
    await Effect.runPromise(work.deps.storage.remove(key()))
    expect(await texts()).toEqual([
      `${subject}: its output part 2 (${key()}) is missing (-)`,
      `${subject}: so its lines can't be counted (-)`,
    ])
    await end()
  })

  it("that goes on between the reads is no finding", async () => {
    await begin()
    await change({ completed: 4 })
    const { storage } = work.deps
    const goesOn = Stream.suspend(() =>
      Stream.concat(
        Stream.fromEffectDrain(Effect.promise(() => change({ epoch: row.epoch + 1 }))),
        storage.get(key()),
      ),
    )
    expect(
      await findings(undefined, { ...checked, storage: { ...storage, get: () => goesOn } }),
    ).toEqual([])
    await change({ epoch: row.epoch })
    await end()
  })

  it("that is over leaves nothing behind", async () => {
    await begin()
    await change({
      status: "completed",
      ended_at: row.ended_at,
      completed: row.completed,
      failed: row.failed,
    })
    time.aheadMs = 2 * hourMs - 60_000
    expect(await findings()).toEqual([])
    time.aheadMs = 2 * hourMs
    expect(await texts()).toEqual([
      `${subject}: it is over, and 2 lines and 1 parts of it are left (they are removed)`,
    ])
    await repairAll()
    expect([await findings(), await work.parts()]).toEqual([[], []])
    await end()
  })
})
