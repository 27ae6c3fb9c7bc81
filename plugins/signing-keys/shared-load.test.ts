import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, it } from "vitest"
import { fakeClock } from "../../testing/index.ts"
import { shareLoad } from "./shared-load.ts"

const gapMs = 1_000

/** Loads that end when the test ends them; `waitMs` advances both clocks. */
const open = async () => {
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const clock = fakeClock()
  const ends: Deferred.Deferred<void, string>[] = []
  const load = Effect.suspend(() => {
    const end = Deferred.makeUnsafe<void, string>()
    ends.push(end)
    return Deferred.await(end)
  })
  const loads = shareLoad(load, clock, gapMs)
  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.runForkWith(services)(effect)
  const loadsBegun = (count: number) => expect.poll(() => ends.length).toBe(count)
  const waitMs = async (ms: number) => {
    // a fiber that was just let through must be asleep before the clocks advance
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    clock.advance(ms)
    await Effect.runPromiseWith(services)(TestClock.adjust(ms))
  }
  return {
    loads,
    ends,
    fork,
    waitMs,
    end: async (at: number) => {
      await loadsBegun(at + 1)
      Effect.runSync(Deferred.succeed(ends[at]!, undefined))
    },
    fail: async (at: number) => {
      await loadsBegun(at + 1)
      Effect.runSync(Deferred.fail(ends[at]!, "down"))
    },
  }
}
const join = (fiber: Fiber.Fiber<void, string>) => Effect.runPromiseExit(Fiber.join(fiber))

it("those who ask while a load runs share the next one, which comes after the gap", async () => {
  const { loads, ends, fork, waitMs, end } = await open()
  const first = fork(loads.paced)
  const others = Array.from({ length: 100 }, () => fork(loads.paced))
  expect(ends).toHaveLength(1)
  await end(0)
  expect(await join(first)).toEqual(Exit.void)
  await waitMs(gapMs - 1)
  expect(ends).toHaveLength(1)
  await waitMs(1)
  await end(1)
  for (const fiber of others) expect(await join(fiber)).toEqual(Exit.void)
  expect(ends).toHaveLength(2)
})

it("a failure is everybody's, and the next one tries again", async () => {
  const { loads, fork, waitMs, end, fail } = await open()
  const [first, second, third] = [fork(loads.now), fork(loads.now), fork(loads.now)]
  await end(0)
  await join(first)
  await fail(1)
  for (const fiber of [second, third]) expect(await join(fiber)).toEqual(Exit.fail("down"))
  await waitMs(gapMs)
  const again = fork(loads.paced)
  await end(2)
  expect(await join(again)).toEqual(Exit.void)
})

it("one that leaves takes nobody with it", async () => {
  const { loads, ends, fork, end } = await open()
  const [first, leaver, other] = [fork(loads.now), fork(loads.now), fork(loads.now)]
  expect(ends).toHaveLength(1)
  leaver.interruptUnsafe()
  first.interruptUnsafe()
  await end(0)
  await join(first)
  await join(leaver)
  await end(1)
  expect(await join(other)).toEqual(Exit.void)
})

it("does not load again what is young", async () => {
  const { loads, ends, fork, end, waitMs } = await open()
  const first = fork(loads.ifOld)
  await end(0)
  await join(first)
  expect(await join(fork(loads.ifOld))).toEqual(Exit.void)
  expect(ends).toHaveLength(1)
  await waitMs(gapMs)
  const second = fork(loads.ifOld)
  await end(1)
  await join(second)
})
