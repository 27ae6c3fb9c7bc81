import { Deferred, Effect } from "effect"
import { expect, it } from "vitest"
import { type ApiError, apiError } from "../../../core/index.ts"
import { type Hold, type HoldTracker, makeHoldTracker } from "./hold-tracker.ts"

const run = Effect.runPromise
const refused = Effect.fail(apiError("insufficient_quota"))
const tried = (hold: Hold, attempt: Effect.Effect<unknown, ApiError>) =>
  run(Effect.ignore(hold.attempt(attempt)))
const asked = (hold: Hold) => {
  let answer: boolean | undefined
  const done = run(hold.freed).then((isMore) => {
    answer = isMore
  })
  /** The answer, after pending events. */
  const now = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return answer
  }
  return { now, done }
}
const holder = async (tracker: HoldTracker): Promise<Hold> => {
  const hold = tracker.open()
  await tried(hold, Effect.void)
  return hold
}

it("a line that nobody else keeps from its money gets none", async () => {
  const hold = makeHoldTracker().open()
  await tried(hold, refused)
  expect(await run(hold.freed)).toBe(false)
})

it("waits until another is settled; releasing again changes nothing", async () => {
  const tracker = makeHoldTracker()
  const [first, second] = [await holder(tracker), await holder(tracker)]
  const hold = tracker.open()
  await tried(hold, refused)
  const wait = asked(hold)
  expect(await wait.now()).toBeUndefined()
  first.release()
  expect(await wait.now()).toBe(true)
  await tried(hold, refused)
  const again = asked(hold)
  first.release()
  expect(await again.now()).toBeUndefined()
  second.release()
  expect(await again.now()).toBe(true)
})

it("what came free while it was refused counts", async () => {
  const tracker = makeHoldTracker()
  const other = await holder(tracker)
  const hold = tracker.open()
  await tried(
    hold,
    Effect.andThen(
      Effect.sync(() => other.release()),
      refused,
    ),
  )
  expect(await run(hold.freed)).toBe(true)
})

it("lines that are refused together don't wait for each other", async () => {
  const tracker = makeHoldTracker()
  const door = Deferred.makeUnsafe<void>()
  const holds = [tracker.open(), tracker.open(), tracker.open()]
  const all = Promise.all(
    holds.map((hold) =>
      tried(hold, Effect.andThen(Deferred.await(door), refused)).then(() => run(hold.freed)),
    ),
  )
  Deferred.doneUnsafe(door, Effect.void)
  expect(await all).toEqual([false, false, false])
})

it("one that failed otherwise, or was given up, lets go of what it held", async () => {
  const tracker = makeHoldTracker()
  const failing = tracker.open()
  const door = Deferred.makeUnsafe<void>()
  const trial = tried(
    failing,
    Effect.andThen(Deferred.await(door), Effect.fail(apiError("backend_error"))),
  )
  const hold = tracker.open()
  await tried(hold, refused)
  const wait = asked(hold)
  expect(await wait.now()).toBeUndefined()
  Deferred.doneUnsafe(door, Effect.void)
  await trial
  expect(await wait.now()).toBe(true)
})
