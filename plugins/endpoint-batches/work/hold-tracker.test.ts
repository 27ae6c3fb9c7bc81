import { Deferred, Effect } from "effect"
import { expect, it } from "vitest"
import { type ApiError, apiError } from "../../../core/index.ts"
import { makePurse, type Purse, type Stake } from "./hold-tracker.ts"

const run = Effect.runPromise
const refused = Effect.fail(apiError("insufficient_quota"))
const tried = (stake: Stake, attempt: Effect.Effect<unknown, ApiError>) =>
  run(Effect.ignore(stake.hold(attempt)))
const asked = (stake: Stake) => {
  let answer: boolean | undefined
  const done = run(stake.more).then((isMore) => {
    answer = isMore
  })
  /** After all that is under way. */
  const now = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return answer
  }
  return { now, done }
}
const holder = async (purse: Purse): Promise<Stake> => {
  const stake = purse.stake()
  await tried(stake, Effect.void)
  return stake
}

it("a line that nobody else keeps from its money gets none", async () => {
  const stake = makePurse().stake()
  await tried(stake, refused)
  expect(await run(stake.more)).toBe(false)
})

it("waits until another is settled; leaving again changes nothing", async () => {
  const purse = makePurse()
  const [first, second] = [await holder(purse), await holder(purse)]
  const stake = purse.stake()
  await tried(stake, refused)
  const wait = asked(stake)
  expect(await wait.now()).toBeUndefined()
  first.leave()
  expect(await wait.now()).toBe(true)
  await tried(stake, refused)
  const again = asked(stake)
  first.leave()
  expect(await again.now()).toBeUndefined()
  second.leave()
  expect(await again.now()).toBe(true)
})

it("what came free while it was refused counts", async () => {
  const purse = makePurse()
  const other = await holder(purse)
  const stake = purse.stake()
  await tried(
    stake,
    Effect.andThen(
      Effect.sync(() => other.leave()),
      refused,
    ),
  )
  expect(await run(stake.more)).toBe(true)
})

it("lines that are refused together don't wait for each other", async () => {
  const purse = makePurse()
  const door = Deferred.makeUnsafe<void>()
  const stakes = [purse.stake(), purse.stake(), purse.stake()]
  const all = Promise.all(
    stakes.map((stake) =>
      tried(stake, Effect.andThen(Deferred.await(door), refused)).then(() => run(stake.more)),
    ),
  )
  Deferred.doneUnsafe(door, Effect.void)
  expect(await all).toEqual([false, false, false])
})

it("one that failed otherwise, or was given up, lets go of what it held", async () => {
  const purse = makePurse()
  const failing = purse.stake()
  const door = Deferred.makeUnsafe<void>()
  const trial = tried(
    failing,
    Effect.andThen(Deferred.await(door), Effect.fail(apiError("backend_error"))),
  )
  const stake = purse.stake()
  await tried(stake, refused)
  const wait = asked(stake)
  expect(await wait.now()).toBeUndefined()
  Deferred.doneUnsafe(door, Effect.void)
  await trial
  expect(await wait.now()).toBe(true)
})
