import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Storage } from "../../../core/index.ts"
import { fakeClock, fakeStorage } from "../../../testing/index.ts"
import { SimulatedWorker } from "../testing/simulated-worker.ts"
import { lineMicros } from "../testing/target.ts"
import { numbersOf, openWorkFixture, type WorkFixture } from "../testing/work-fixture.ts"

const clock = fakeClock()
let fixture: WorkFixture
/** Called when a blob is stored, and no row names it yet. */
let afterPut = async () => {}
beforeAll(async () => {
  const storage = fakeStorage()
  const put: Storage["put"] = (key, body, maxBytes) =>
    Effect.tap(storage.put(key, body, maxBytes), () => Effect.promise(() => afterPut()))
  fixture = await openWorkFixture({
    clock,
    limits: { leaseMs: 10_000 },
    storage: { ...storage, put },
  })
}, 120_000)
afterAll(() => fixture?.close())

/**
 * A batch of six lines; the first worker has run so many of them, and the second one has taken it
 * over.
 */
const taken = async (account: string, ran: number) => {
  const id = await fixture.create(account, 6)
  clock.advance(10_001)
  const [first, second] = [new SimulatedWorker(fixture), new SimulatedWorker(fixture)]
  await first.claim(id)
  for (let n = 0; n < ran; n++) await first.run(0)
  await first.commit()
  clock.advance(10_001)
  return { id, first, second }
}

describe("a worker that has lost its lease", () => {
  it("commits nothing, and nothing of it is paid", async () => {
    const { id, first, second } = await taken("a", 2)
    await first.run(0)
    await second.claim(id)
    await first.commit()
    expect(first.works).toBe(false)
    expect(await fixture.batch(id)).toMatchObject({
      epoch: 2,
      completed: 2,
      cost_micros: 2n * lineMicros,
    })
    expect(
      (await fixture.calls()).filter(({ parent }) => parent === id).map(({ state }) => state),
    ).toEqual(["settled", "settled", "voided"])
  })

  it("makes no part: what is done never goes back", async () => {
    const { id, first, second } = await taken("b", 3)
    await second.claim(id)
    for (let n = 0; n < 2; n++) await second.run(0)
    await second.commit()
    await second.compact()
    // and no empty one for errors
    expect((await fixture.parts()).filter((key) => key.includes(id))).toEqual([
      expect.stringMatching(new RegExp(`^batches/${id}/2-5-output-\\w+$`)),
    ])
    await first.compact()
    expect(await fixture.batch(id)).toMatchObject({ done_through: 5, completed: 5 })
    second.die()
    clock.advance(10_001)
    // it reads from the end of the segments
    await first.claim(id)
    await first.run(0)
    await first.commit()
    await first.finish()
    const row = await fixture.batch(id)
    expect([row.status, numbersOf(await fixture.linesOf(row.output_file_id))]).toEqual([
      "completed",
      [0, 1, 2, 3, 4, 5],
    ])
  })

  it("does not end it", async () => {
    const { id, first, second } = await taken("c", 6)
    await second.claim(id)
    await first.finish()
    expect(await fixture.batch(id)).toMatchObject({ status: "in_progress", output_file_id: null })
    await second.finish()
    expect(await fixture.batch(id)).toMatchObject({ status: "completed", completed: 6 })
    expect((await fixture.events()).filter(({ data }) => data.id === id)).toHaveLength(1)
  })

  it("does not end it either when it loses it, or when it is cancelled, while the files are made", async () => {
    for (const [account, meanwhile, status] of [
      ["d", (id: string, second: SimulatedWorker) => second.claim(id), "in_progress"],
      ["e", (id: string) => fixture.cancel(id), "cancelled"],
    ] as const) {
      const { id, first, second } = await taken(account, 6)
      await first.claim(id)
      afterPut = async () => {
        afterPut = async () => {}
        clock.advance(10_001)
        await meanwhile(id, second)
      }
      await first.finish()
      expect(await fixture.batch(id)).toMatchObject({ status, output_file_id: null })
      expect((await fixture.events()).filter(({ data }) => data.id === id)).toEqual([])
      expect(
        (await fixture.files.rows()).filter(
          ({ tenant, purpose }) => tenant.account === account && purpose === "batch_output",
        ),
      ).toEqual([])
    }
  })
})
