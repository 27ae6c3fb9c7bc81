import { Deferred, Effect, Exit, Fiber } from "effect"
import { expect, test } from "vitest"
import { microBatched } from "./micro-batch.ts"

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Returns ten times each number; fails where there is a 13. */
const makeRun = (door: Effect.Effect<void> = Effect.void) => {
  const runs: (readonly number[])[] = []
  const run = microBatched<number, number, string>({
    runAll: (inputs) => {
      runs.push(inputs)
      return Effect.andThen(
        door,
        inputs.includes(13) ? Effect.fail("thirteen") : Effect.succeed(inputs.map((n) => n * 10)),
      )
    },
    sizeOf: (n) => n,
    maxSize: 20,
  })
  return { run, runs }
}

test("what comes in one turn runs as one, and each gets its own answer", async () => {
  const { run, runs } = makeRun()
  expect(
    await Effect.runPromise(Effect.all([run(1), run(2), run(3)], { concurrency: "unbounded" })),
  ).toEqual([10, 20, 30])
  expect(await Effect.runPromise(run(4))).toBe(40)
  expect(runs).toEqual([[1, 2, 3], [4]])
})

test("together they are no larger than allowed; a larger one runs at once", async () => {
  const { run, runs } = makeRun()
  expect(
    await Effect.runPromise(
      Effect.all([run(12), run(8), run(1), run(50), run(2)], { concurrency: "unbounded" }),
    ),
  ).toEqual([120, 80, 10, 500, 20])
  expect(runs).toEqual([[50], [12, 8], [1, 2]])
})

test("a failure is that of all who ran together, and of nobody else", async () => {
  const { run } = makeRun()
  const exits = await Effect.runPromise(
    Effect.forEach([5, 13, 6], (n) => Effect.exit(run(n)), { concurrency: "unbounded" }),
  )
  expect(exits.map(Exit.isSuccess)).toEqual([false, false, true])
})

test("a large one whose caller leaves is ended", async () => {
  let isEnded = false
  const ended = Effect.sync(() => {
    isEnded = true
  })
  const { run } = makeRun(Effect.onInterrupt(Effect.never, () => ended))
  await Effect.runPromise(Fiber.interrupt(Effect.runFork(run(20))))
  expect(isEnded).toBe(true)
})

test("who leaves does not end it for the others", async () => {
  const door = Deferred.makeUnsafe<void>()
  const { run, runs } = makeRun(Deferred.await(door))
  const [leaver, other] = [Effect.runFork(run(1)), Effect.runFork(run(2))]
  await turn()
  await Effect.runPromise(Fiber.interrupt(leaver))
  Deferred.doneUnsafe(door, Exit.void)
  expect(await Effect.runPromise(Fiber.join(other))).toBe(20)
  expect(runs).toEqual([[1, 2]])
})
