import { Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, it } from "vitest"
import { type FakeLog, fakeLog } from "../testing/fakes/log.ts"
import { type Loop, repeat, repeatInTurn } from "./repeat.ts"

const hourly = { event: "thing.sweep_failed", message: "things could not be swept" } as const

/** Loops under a clock that the test moves. */
const startLoops = async (loops: (log: FakeLog) => Effect.Effect<void, never, Scope.Scope>) => {
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(services)
  const [log, scope] = [fakeLog(), Scope.makeUnsafe()]
  await run(Effect.provideService(loops(log), Scope.Scope, scope))
  const pass = (minutes: number) => run(TestClock.adjust(`${minutes} minutes`))
  await pass(0)
  return { log, pass, stop: () => run(Scope.close(scope, Exit.void)) }
}
const start = (loop: Partial<Loop>, work: Effect.Effect<unknown, unknown>) =>
  startLoops((log) => repeat(log, { ...hourly, everyMs: 3_600_000, ...loop }, work))

const counted = (work: (run: number) => Effect.Effect<unknown, unknown> = () => Effect.void) => {
  const count = { runs: 0 }
  return { count, work: Effect.suspend(() => work(++count.runs)) }
}

it("runs at once and then after every pause, until its Scope closes", async () => {
  const { count, work } = counted()
  const { pass, stop, log } = await start({}, work)
  expect(count.runs).toBe(1)
  await pass(59)
  expect(count.runs).toBe(1)
  await pass(1)
  expect(count.runs).toBe(2)
  await stop()
  await pass(600)
  expect(count.runs).toBe(2)
  expect(log.lines).toEqual([])
})

it("may wait before its first run, for another time each turn", async () => {
  const { count, work } = counted()
  const pauses = [60_000, 120_000, 180_000]
  const { pass } = await start({ everyMs: () => pauses.shift() ?? 1e9, isDelayed: true }, work)
  const runs: number[] = []
  for (let minute = 0; minute < 7; minute++) {
    runs.push(count.runs)
    await pass(1)
  }
  expect(runs).toEqual([0, 1, 1, 2, 2, 2, 3])
})

it("goes on after a failure, a defect and an interruption of its work, each of which is logged", async () => {
  const failures = [Effect.fail("down"), Effect.die(new Error("a bug")), Effect.interrupt]
  const { count, work } = counted((run) => failures[run - 1] ?? Effect.void)
  const { pass, log } = await start({}, work)
  for (let hour = 0; hour < 4; hour++) await pass(60)
  expect(count.runs).toBe(5)
  expect(log.lines).toMatchObject([
    { level: "warn", ...hourly, fields: { cause: expect.stringContaining("down") } },
    { level: "warn", ...hourly, fields: { cause: expect.stringContaining("a bug") } },
    { level: "warn", ...hourly },
  ])
})

it("a stop in the middle of the work interrupts it and logs nothing", async () => {
  let isInterrupted = false
  const { log, stop } = await start(
    {},
    Effect.onInterrupt(Effect.never, () =>
      Effect.sync(() => {
        isInterrupted = true
      }),
    ),
  )
  await stop()
  expect(isInterrupted).toBe(true)
  expect(log.lines).toEqual([])
})

it("in turn, runs of different loops never overlap, and a failed one lets the next in", async () => {
  const steps: string[] = []
  const slow = (name: string, then: Effect.Effect<void, string> = Effect.void) =>
    Effect.gen(function* () {
      steps.push(`${name} begins`)
      yield* Effect.sleep("1 minute")
      steps.push(`${name} ends`)
      yield* then
    })
  const loop = { ...hourly, everyMs: 3_600_000 }
  const { pass, log } = await startLoops((to) =>
    repeatInTurn(to, [
      [loop, slow("a", Effect.fail("down"))],
      [loop, slow("b")],
    ]),
  )
  expect(steps).toEqual(["a begins"])
  await pass(1)
  expect(steps).toEqual(["a begins", "a ends", "b begins"])
  await pass(1)
  expect(steps).toEqual(["a begins", "a ends", "b begins", "b ends"])
  expect(log.lines).toHaveLength(1)
})
