import { Effect } from "effect"
import {
  type AsyncCommand,
  assert,
  asyncModelRun,
  asyncProperty,
  commands,
  constant,
  constantFrom,
  integer,
} from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { apiError } from "../../../core/index.ts"
import { fakeClock } from "../../../testing/index.ts"
import type { BatchRow } from "../tables.ts"
import type { Crash } from "../testing/crashes.ts"
import { SimulatedWorker } from "../testing/simulated-worker.ts"
import { lineMicros } from "../testing/target.ts"
import { numbersOf, openWorkFixture, type WorkFixture } from "../testing/work-fixture.ts"
import { dropEnded, dropOrphans } from "./sweep.ts"

/**
 * Two workers, each perhaps stale, on one batch in the real tables. In any order of events: what is
 * committed stays, counts once and is paid once;
 * the end is final; and without further crashes all lines are there, in order.
 */
const clock = fakeClock()
/** This line always fails. */
const badLine = 3
let fixture: WorkFixture
beforeAll(async () => {
  fixture = await openWorkFixture({
    clock,
    limits: { leaseMs: 10_000, windowMs: 3_600_000 },
    run: (n) =>
      n === badLine ? Effect.fail(apiError("context_length_exceeded")) : Effect.succeed({ n }),
  })
}, 120_000)
afterAll(() => fixture?.close())

/** The state that each step is compared with. */
interface Model {
  completed: number
  failed: number
  costMicros: bigint
  doneThrough: number
  ended: BatchRow | undefined
}

interface Real {
  readonly id: string
  readonly account: string
  readonly workers: readonly SimulatedWorker[]
}

const paidOf = async (id: string) =>
  (await fixture.calls()).filter(({ parent, state }) => parent === id && state === "settled")

const observe = async (model: Model, { id }: Real) => {
  const row = await fixture.batch(id)
  expect(row.completed).toBeGreaterThanOrEqual(model.completed)
  expect(row.failed).toBeGreaterThanOrEqual(model.failed)
  expect(row.cost_micros).toBeGreaterThanOrEqual(model.costMicros)
  expect(row.done_through).toBeGreaterThanOrEqual(model.doneThrough)
  // an ended batch changes no more, but for the cost of its last lines
  if (model.ended)
    expect({ ...row, cost_micros: 0n, lease_until: null }).toEqual({
      ...model.ended,
      cost_micros: 0n,
      lease_until: null,
    })
  const paid = await paidOf(id)
  expect(new Set(paid.map(({ request_id }) => request_id)).size, "no line is paid twice").toBe(
    paid.length,
  )
  expect(row.cost_micros).toBe(BigInt(paid.length) * lineMicros)
  if (row.status === "in_progress") expect(paid.length).toBe(row.completed)
  Object.assign(model, {
    completed: row.completed,
    failed: row.failed,
    costMicros: row.cost_micros,
    doneThrough: row.done_through,
    ended: row.ended_at ? row : undefined,
  })
}

const move = (name: string, act: (real: Real) => unknown): AsyncCommand<Model, Real> => ({
  check: () => true,
  run: async (model, real) => {
    await act(real)
    fixture.crashes.set(undefined)
    await observe(model, real)
  },
  toString: () => name,
})

const moves = () => {
  const who = constantFrom(0, 1)
  const crash = constantFrom<Crash | undefined>(undefined, undefined, "rollback", "answer", "put")
  const faulty = (name: "claim" | "commit" | "compact" | "finish") =>
    who.chain((worker) =>
      crash.map((why) =>
        move(`${name} ${worker}${why ? `, crash: ${why}` : ""}`, ({ workers, id }) => {
          fixture.crashes.set(why)
          return workers[worker]![name](id)
        }),
      ),
    )
  const runs = who.chain((worker) =>
    integer({ min: 0, max: 2 }).map((pick) =>
      move(`run ${worker} ${pick}`, ({ workers }) => workers[worker]!.run(pick)),
    ),
  )
  const toggle = (name: string, act: (real: Real) => unknown) => constant(move(name, act))
  const rarely = (name: string, act: (real: Real) => unknown) =>
    integer({ min: 0, max: 5 }).map((n) => (n === 0 ? move(name, act) : move("nothing", () => {})))
  const often = [
    runs,
    runs,
    runs,
    runs,
    faulty("commit"),
    faulty("commit"),
    faulty("commit"),
    faulty("claim"),
    faulty("claim"),
    faulty("compact"),
    faulty("finish"),
  ]
  return [
    ...often,
    ...often,
    ...often,
    who.map((worker) => move(`die ${worker}`, ({ workers }) => workers[worker]!.die())),
    toggle("the lease runs out", () => clock.advance(10_001)),
    toggle("the lease runs out", () => clock.advance(10_001)),
    rarely("the day is over", () => clock.advance(3_600_001)),
    rarely("cancel", ({ id }) => fixture.cancel(id)),
    toggle("no money", ({ account }) => fixture.broke.add(account)),
    toggle("money", ({ account }) => fixture.broke.delete(account)),
    toggle("suspended", ({ account }) => fixture.identity.add({ key: account, suspended: true })),
    toggle("back", ({ account }) => fixture.identity.add({ key: account, suspended: false })),
    toggle("sweep", () =>
      Effect.runPromise(Effect.andThen(dropEnded(fixture.deps), dropOrphans(fixture.deps))),
    ),
  ]
}

/** One worker takes the batch to its end without crashes, but dies once after a segment. */
const workToTheEnd = async (model: Model, real: Real) => {
  const [worker] = real.workers
  for (let turn = 0; turn < 3 && !model.ended; turn++) {
    clock.advance(10_001)
    await worker!.claim(real.id)
    for (let line = 0; line < 2 && turn === 0; line++) await worker!.run(0)
    if (turn === 0) for (const last of ["commit", "compact", "die"] as const) await worker![last]()
    while (worker!.works && !model.ended) {
      await worker!.run(0)
      await worker!.commit()
      await worker!.finish()
      await observe(model, real)
    }
    await observe(model, real)
  }
}

const checkEnd = async ({ id }: Real, lines: number) => {
  const row = await fixture.batch(id)
  const [good, bad] = [
    await fixture.linesOf(row.output_file_id),
    await fixture.linesOf(row.error_file_id),
  ]
  const [output, errors] = [numbersOf(good), numbersOf(bad)]
  const inOrder = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)
  expect([output, errors]).toEqual([inOrder(output), inOrder(errors)])
  const all = [...output, ...errors]
  expect(new Set(all).size, "each once").toBe(all.length)
  if (row.status !== "cancelled")
    expect([output.length, errors.length]).toEqual([row.completed, row.failed])
  if (row.status === "completed")
    expect(inOrder(all)).toEqual(Array.from({ length: lines }, (_, n) => n))
  for (const { response, custom_id } of good) expect(`line-${response?.body.n}`).toBe(custom_id)
  const paid = (await paidOf(id)).map(({ request_id }) => request_id)
  if (row.status === "cancelled")
    expect([row.output_file_id, row.error_file_id]).toEqual([null, null])
  else expect(inOrderOfText(good.map((line) => line.id))).toEqual(inOrderOfText(paid))
  const events = (await fixture.events())
    .filter(({ data }) => data.id === id)
    .map(({ event }) => event)
  expect(events).toEqual(row.status === "completed" ? ["batch.completed"] : [])
  await Effect.runPromise(Effect.andThen(dropEnded(fixture.deps), dropOrphans(fixture.deps)))
  expect([
    await fixture.rowsOf("batches_line"),
    await fixture.rowsOf("batches_part"),
    await fixture.parts(),
  ]).toEqual([0, 0, []])
  return row.status
}

const inOrderOfText = (texts: readonly string[]) => [...texts].sort()

it("holds over any interleaving of polls, lines, commits, parts, crashes, cancels and expiry", async () => {
  const seen = new Map<string, number>()
  let account = 0
  await assert(
    asyncProperty(
      integer({ min: 1, max: 12 }),
      commands(moves(), { maxCommands: 60, size: "max" }),
      async (lines, steps) => {
        const name = `a${account++}`
        const real: Real = {
          id: await fixture.create(name, lines),
          account: name,
          workers: [new SimulatedWorker(fixture), new SimulatedWorker(fixture)],
        }
        clock.advance(10_001)
        const model: Model = {
          completed: 0,
          failed: 0,
          costMicros: 0n,
          doneThrough: 0,
          ended: undefined,
        }
        await asyncModelRun(() => ({ model, real }), steps)
        const isOpen = model.ended === undefined
        await workToTheEnd(model, real)
        // the claim has voided what earlier workers had begun
        if (isOpen)
          expect(
            (await fixture.calls()).filter(
              ({ parent, state }) => parent === real.id && state === "open",
            ),
          ).toEqual([])
        const status = await checkEnd(real, lines)
        seen.set(status, (seen.get(status) ?? 0) + 1)
      },
    ),
    { numRuns: Number(process.env.RAKIT_TEST_RUNS ?? 8), endOnFailure: true },
  )
  console.log(`ended as ${[...seen].map(([status, times]) => `${status} ${times}`).join(", ")}`)
  expect([...seen.keys()]).toEqual(expect.arrayContaining(["completed"]))
}, 600_000)
