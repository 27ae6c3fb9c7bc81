import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { makeDoor, patient, useWorkers } from "../testing/start-worker.ts"
import { inputLine, lineMicros } from "../testing/target.ts"
import { numbers, numbersOf } from "../testing/work-fixture.ts"

const { open, work, ended, running } = useWorkers()

describe("several batches", () => {
  it("of an account that has many places give one up for an account that has none", async () => {
    const fixture = await open({
      limits: { batchesAtOnce: 5, linesAtOnce: 5 },
      run: (n) => (n < 0 ? Effect.succeed({ n }) : Effect.as(Effect.sleep(5), { n })),
    })
    const long = await Promise.all(
      ["a", "a", "b", "b", "c"].map((account) => fixture.create(account, 2_000)),
    )
    work()
    for (const id of long) await running(id)
    const late = await fixture.create("d", inputLine(-1))
    expect(await ended(late)).toMatchObject({ status: "completed", completed: 1 })
    const rows = await Promise.all(long.map((id) => fixture.batch(id)))
    expect(rows.map(({ status }) => status)).toEqual(long.map(() => "in_progress"))
    // the batch that yielded goes on
    await vi.waitFor(
      async () =>
        expect(
          (
            await fixture.db
              .selectFrom("batches_batch")
              .select("epoch")
              .where("epoch", ">", 1)
              .execute()
          ).length,
        ).toBeGreaterThan(0),
      {
        timeout: 5_000,
      },
    )
  })

  it("of one account make room for another account", async () => {
    const door = makeDoor()
    const fixture = await open({
      limits: { batchesAtOnce: 1 },
      run: (n) => (n === 1 ? Effect.as(door.pass, { n }) : Effect.succeed({ n })),
    })
    const ids = [
      await fixture.create("a", 2),
      await fixture.create("b", 2),
      await fixture.create("a", 2),
    ]
    work()
    await running(ids[0]!, 1)
    door.open()
    for (const id of ids)
      expect(await ended(id)).toMatchObject({ status: "completed", completed: 2 })
    const order = (await Promise.all(ids.map((id) => fixture.batch(id)))).map(({ ended_at }) =>
      ended_at!.getTime(),
    )
    expect(order[1]).toBeLessThanOrEqual(order[2]!)
  })

  it("workers that stop and start again and again leave nothing out and nothing twice", async () => {
    let ran = 0
    const fixture = await open({
      limits: { linesAtOnce: 4 },
      run: (n) => Effect.map(Effect.sleep(1), () => ({ n, at: ran++ })),
    })
    const ids = await Promise.all(["a", "b", "c"].map((account) => fixture.create(account, 80)))
    for (let round = 0; round < 5; round++) {
      const before = ran
      const pair = [work(), work()]
      await vi.waitFor(() => expect(ran).toBeGreaterThanOrEqual(Math.min(before + 30, 240)), {
        ...patient,
        interval: 2,
      })
      await Promise.all(pair.map((stop) => stop()))
      expect((await fixture.calls()).filter(({ state }) => state === "open")).toEqual([])
    }
    work()
    for (const id of ids) {
      const row = await ended(id)
      expect(row).toMatchObject({
        status: "completed",
        completed: 80,
        cost_micros: 80n * lineMicros,
      })
      expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(80))
    }
    const paid = (await fixture.calls()).filter(({ state }) => state === "settled")
    expect([paid.length, new Set(paid.map(({ request_id }) => request_id)).size]).toEqual([
      240, 240,
    ])
  })
})
