import { Deferred, Effect, Exit, Fiber } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { fakeClock } from "../../testing/index.ts"
import { makeBoundedMap } from "./bounded-map.ts"
import { makeLookupCache } from "./lookup-cache.ts"

const setUp = (more: { maxEntries?: number; maxLoads?: number } = {}) => {
  const clock = fakeClock()
  const values = new Map<string, { n: number }>()
  const loads: string[] = []
  let gate: Effect.Effect<void, string> = Effect.void
  const load = (key: string) =>
    Effect.suspend(() => {
      loads.push(key)
      return Effect.map(gate, () => values.get(key))
    })
  const cache = makeLookupCache({
    load,
    clock,
    foundMs: 5_000,
    missingMs: 1_000,
    maxEntries: 10,
    maxLoads: 10,
    ...more,
  })
  return {
    clock,
    values,
    loads,
    lookup: cache.find,
    forget: cache.forget,
    hold: (effect: Effect.Effect<void, string>) => (gate = effect),
  }
}
const run = Effect.runPromise

it("asks once in 5 s for what it found, once in 1 s for what it did not", async () => {
  const { clock, values, loads, lookup } = setUp()
  values.set("a", { n: 1 })
  for (const ms of [0, 4_999]) {
    clock.advance(ms)
    expect(await run(lookup("a"))).toEqual({ n: 1 })
  }
  expect(loads).toHaveLength(1)
  values.set("a", { n: 2 })
  clock.advance(1)
  expect(await run(lookup("a"))).toEqual({ n: 2 })
  expect(await run(lookup("b"))).toBeUndefined()
  values.set("b", { n: 3 })
  clock.advance(999)
  expect(await run(lookup("b"))).toBeUndefined()
  clock.advance(1)
  expect(await run(lookup("b"))).toEqual({ n: 3 })
})

it("counts the time from the question, not from the answer", async () => {
  const { clock, values, loads, lookup, hold } = setUp()
  values.set("a", { n: 1 })
  hold(Effect.sync(() => clock.advance(4_000)))
  await run(lookup("a"))
  hold(Effect.void)
  clock.advance(1_000)
  await run(lookup("a"))
  expect(loads).toHaveLength(2)
})

it("shares one load among all who ask meanwhile, and a caller that leaves does not end it", async () => {
  const { values, loads, lookup, hold } = setUp()
  values.set("a", { n: 1 })
  const gate = Deferred.makeUnsafe<void, string>()
  hold(Deferred.await(gate))
  const first = Effect.runFork(lookup("a"))
  const others = Array.from({ length: 20 }, () => run(lookup("a")))
  await run(Fiber.interrupt(first))
  Deferred.doneUnsafe(gate, Effect.void)
  expect(await Promise.all(others)).toEqual(Array(20).fill({ n: 1 }))
  expect(loads).toEqual(["a"])
})

it("tells a failure to all who wait, and does not remember it", async () => {
  const { values, loads, lookup, hold } = setUp()
  hold(Effect.andThen(Effect.sleep("5 millis"), Effect.fail("down")))
  const exits = await Promise.all(
    Array.from({ length: 3 }, () => Effect.runPromiseExit(lookup("a"))),
  )
  expect(exits).toEqual(Array(3).fill(Exit.fail("down")))
  hold(Effect.void)
  values.set("a", { n: 1 })
  expect(await run(lookup("a"))).toEqual({ n: 1 })
  expect(loads).toHaveLength(2)
})

it("refuses more loads than it may have under way", async () => {
  const { lookup, hold } = setUp({ maxLoads: 2 })
  const gate = Deferred.makeUnsafe<void, string>()
  hold(Deferred.await(gate))
  const waiting = ["a", "b", "a"].map((key) => run(lookup(key)))
  expect(await run(Effect.flip(lookup("c")))).toMatchObject({ code: "backend_busy" })
  Deferred.doneUnsafe(gate, Effect.void)
  await Promise.all(waiting)
  expect(await run(lookup("c"))).toBeUndefined()
})

it("a load whose caller has left counts until it ends, and is remembered", async () => {
  const { loads, lookup, hold } = setUp({ maxLoads: 1 })
  const gate = Deferred.makeUnsafe<void, string>()
  hold(Deferred.await(gate))
  const leaving = run(Fiber.interrupt(Effect.runFork(lookup("a"))))
  expect(await run(Effect.flip(lookup("b")))).toMatchObject({ code: "backend_busy" })
  const late = run(lookup("a"))
  Deferred.doneUnsafe(gate, Effect.void)
  await leaving
  expect(await late).toBeUndefined()
  expect(loads).toEqual(["a"])
  expect(await run(lookup("b"))).toBeUndefined()
})

it("a flood of unknown keys pushes out no known one", async () => {
  const { values, loads, lookup } = setUp({ maxEntries: 5 })
  values.set("a", { n: 1 })
  await run(lookup("a"))
  for (let i = 0; i < 1_000; i++) await run(lookup(`random-${i}`))
  await run(lookup("a"))
  expect(loads.filter((key) => key === "a")).toHaveLength(1)
})

it("asks again for what was forgotten, and for nothing else", async () => {
  const { values, loads, lookup, forget } = setUp()
  values.set("a", { n: 1 })
  values.set("b", { n: 2 })
  for (const key of ["a", "b"]) await run(lookup(key))
  values.set("a", { n: 3 })
  forget(({ n }) => n === 1)
  for (const key of ["a", "b"]) await run(lookup(key))
  expect(await run(lookup("a"))).toEqual({ n: 3 })
  expect(loads).toEqual(["a", "b", "a"])
})

it("does not remember what was asked before a change, nor share it with who asks after", async () => {
  const { values, loads, lookup, forget, hold } = setUp({ maxLoads: 2 })
  values.set("a", { n: 1 })
  const [before, after] = [Deferred.makeUnsafe<void, string>(), Deferred.makeUnsafe<void, string>()]
  hold(
    Effect.andThen(
      Effect.sync(() => values.get("a")),
      Deferred.await(before),
    ),
  )
  const early = run(lookup("a"))
  forget(() => true)
  hold(Deferred.await(after))
  const late = run(lookup("a"))
  expect(loads).toEqual(["a", "a"])
  // both loads are still running
  expect(await run(Effect.flip(lookup("c")))).toMatchObject({ code: "backend_busy" })
  Deferred.doneUnsafe(before, Effect.void)
  await early
  values.set("a", { n: 2 })
  Deferred.doneUnsafe(after, Effect.void)
  expect(await late).toEqual({ n: 2 })
  expect(await run(lookup("a"))).toEqual({ n: 2 })
  expect(loads).toEqual(["a", "a"])
})

it("a bounded map holds the entries that were touched last", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("get", "set", "delete"), fc.nat({ max: 8 }))),
      (steps) => {
        const map = makeBoundedMap<number, { of: number }>(4)
        let model: number[] = []
        for (const [step, key] of steps) {
          const has = model.includes(key)
          const rest = model.filter((k) => k !== key)
          if (step === "get") expect(map.get(key)).toEqual(has ? { of: key } : undefined)
          if (step === "set") map.set(key, { of: key })
          if (step === "delete") map.delete(key)
          model = step === "delete" || (step === "get" && !has) ? rest : [...rest, key].slice(-4)
          expect(map.size).toBe(model.length)
          expect([...map.entries()]).toEqual(model.map((k) => [k, { of: k }]))
        }
      },
    ),
  )
})
