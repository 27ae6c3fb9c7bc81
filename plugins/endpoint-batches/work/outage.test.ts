import { Effect } from "effect"
import { expect, it, vi } from "vitest"
import { PortError } from "../../../core/index.ts"
import { makeDoor, patient, useWorkers } from "../testing/start-worker.ts"
import { lineMicros } from "../testing/target.ts"
import { numbers, numbersOf, type WorkFixture } from "../testing/work-fixture.ts"

const { open, work, ended, running } = useWorkers()
const leaseMs = 300

/** How often a line ran. */
const makeTries = () => {
  const tries = new Map<number, number>()
  const door = makeDoor()
  const run = (n: number) =>
    Effect.suspend(() => {
      tries.set(n, (tries.get(n) ?? 0) + 1)
      return Effect.as(door.pass, { n })
    })
  return { tries, door, run }
}

const waits = (fixture: WorkFixture) =>
  vi.waitFor(
    () => expect(fixture.log.lines.map(({ event }) => event)).toContain("batch.waits_for_outage"),
    patient,
  )

/** Renewals fail for longer than the lease. */
const leaseIsOver = async (fixture: WorkFixture, id: string) => {
  const { lease_until } = await fixture.batch(id)
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(lease_until!.getTime()), patient)
}

const expectEachOnce = async (fixture: WorkFixture, id: string, lines: number) => {
  const row = await ended(id)
  expect(row).toMatchObject({
    status: "completed",
    completed: lines,
    failed: 0,
    epoch: 1,
    cost_micros: BigInt(lines) * lineMicros,
  })
  expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(lines))
  expect((await fixture.calls()).map(({ state }) => state)).toEqual(Array(lines).fill("settled"))
}

it("lines that run when the database goes wait for it with their answers, beyond the lease", async () => {
  const { tries, door, run } = makeTries()
  const fixture = await open({ run, limits: { leaseMs, linesAtOnce: 6 } })
  const id = await fixture.create("a", 12)
  work()
  await running(id)
  await vi.waitFor(() => expect(tries.size).toBe(6), patient)
  fixture.crashes.setAway(true)
  door.open()
  await waits(fixture)
  await leaseIsOver(fixture, id)
  fixture.crashes.setAway(false)
  await expectEachOnce(fixture, id, 12)
  expect([...tries.values()]).toEqual(Array(12).fill(1))
})

it("a commit that was made although its answer was lost is not made again", async () => {
  const { tries, door, run } = makeTries()
  const fixture = await open({ run, limits: { leaseMs, linesAtOnce: 6 } })
  const id = await fixture.create("a", 6)
  work()
  await running(id)
  fixture.crashes.set("lost")
  door.open()
  await waits(fixture)
  await leaseIsOver(fixture, id)
  fixture.crashes.setAway(false)
  await expectEachOnce(fixture, id, 6)
  expect([...tries.values()]).toEqual(Array(6).fill(1))
})

it("a key that can't be looked up meanwhile is no failure of the line", async () => {
  const { tries, door, run } = makeTries()
  const fixture = await open({ run, limits: { leaseMs, linesAtOnce: 1 } })
  const { resume } = fixture.identity
  let asked = 0
  const id = await fixture.create("a", 2)
  work()
  await vi.waitFor(() => expect(tries.size).toBe(1), patient)
  fixture.deps.identity.resume = (keyId) =>
    asked++ === 0
      ? Effect.fail(new PortError({ port: "identity", message: "gone", why: "unavailable" }))
      : resume(keyId)
  door.open()
  await expectEachOnce(fixture, id, 2)
  expect([...tries.values()]).toEqual([1, 1])
  expect(asked).toBe(2)
  expect(fixture.log.lines.map(({ event }) => event)).not.toContain("batch.line_failed")
})

it("a worker that stops while it waits gives its answers up, and another one goes on", async () => {
  const { tries, door, run } = makeTries()
  const fixture = await open({ run, limits: { leaseMs, linesAtOnce: 6 } })
  const id = await fixture.create("a", 6)
  const stop = work()
  await running(id)
  await vi.waitFor(() => expect(tries.size).toBe(6), patient)
  fixture.crashes.setAway(true)
  door.open()
  await waits(fixture)
  await stop()
  fixture.crashes.setAway(false)
  work()
  const row = await ended(id)
  expect(row).toMatchObject({ status: "completed", completed: 6, epoch: 2 })
  expect(row.cost_micros).toBe(6n * lineMicros)
})
