import { once } from "node:events"
import { Effect, Fiber } from "effect"
import { expect, test } from "vitest"
import { makeCohorts } from "./cohorts.ts"

/** `count` requests that go through two stages; returns the order in which they did. */
const stagesOf = async (count: number): Promise<readonly string[]> => {
  const cohorts = makeCohorts()
  const seen: string[] = []
  const request = (name: number) =>
    Effect.gen(function* () {
      seen.push(`first ${name}`)
      yield* cohorts.join
      seen.push(`second ${name}`)
    })
  cohorts.add(count)
  const all = Array.from({ length: count }, (_, name) => request(name))
  await Effect.runPromise(Effect.all(all, { concurrency: "unbounded" }))
  return seen
}

test("many requests go through each stage one after the other", async () => {
  const of = (stage: string) => Array.from({ length: 8 }, (_, name) => `${stage} ${name}`)
  expect(await stagesOf(8)).toEqual([...of("first"), ...of("second")])
})

test("few requests wait for nobody", async () => {
  expect(await stagesOf(2)).toEqual(["first 0", "second 0", "first 1", "second 1"])
})

test("long work of a cohort leaves turns to others", async () => {
  const cohorts = makeCohorts()
  cohorts.add(8)
  const seen: string[] = []
  const work = (name: string) => () => {
    seen.push(name)
    for (const untilMs = performance.now() + 6; performance.now() < untilMs; );
  }
  cohorts.go(work("first"))
  cohorts.go(work("second"))
  setImmediate(() => seen.push("other"))
  await Effect.runPromise(cohorts.join)
  expect(seen).toEqual(["first", "other", "second"])
})

test("who comes during long work goes on after those that came before", async () => {
  const cohorts = makeCohorts()
  cohorts.add(8)
  const seen: string[] = []
  const long = (name: string, next: () => void) => () => {
    seen.push(name)
    next()
    for (const untilMs = performance.now() + 6; performance.now() < untilMs; );
  }
  const added = (name: string) => () => cohorts.go(long(name, () => {}))
  cohorts.go(long("a", added("d")))
  cohorts.go(long("b", added("e")))
  cohorts.go(long("c", () => {}))
  while (seen.length < 5) await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual(["a", "b", "c", "d", "e"])
  // an empty turn does no harm
  await new Promise((resolve) => setImmediate(resolve))
  await Effect.runPromise(cohorts.join)
})

test("who leaves is not waited for", async () => {
  const cohorts = makeCohorts()
  cohorts.add(8)
  const seen: string[] = []
  const fiber = Effect.runFork(
    Effect.andThen(
      cohorts.join,
      Effect.sync(() => seen.push("left")),
    ),
  )
  cohorts.go(() => seen.push("stayed"))
  await Effect.runPromise(Fiber.interrupt(fiber))
  await Effect.runPromise(cohorts.join)
  expect(seen).toEqual(["stayed"])
  cohorts.add(-8)
  cohorts.go(() => seen.push("alone"))
  expect(seen).toEqual(["stayed", "alone"])
})

test("one that throws keeps no other from going on", async () => {
  const before = process.listeners("uncaughtException")
  process.removeAllListeners("uncaughtException")
  const thrown = once(process, "uncaughtException")
  try {
    const cohorts = makeCohorts()
    cohorts.add(8)
    const seen: number[] = []
    for (let n = 0; n < 4; n++)
      cohorts.go(() => {
        if (n === 1) throw new Error("broken")
        seen.push(n)
      })
    expect(await thrown).toMatchObject([{ message: "broken" }, "uncaughtException"])
    await Effect.runPromise(cohorts.join)
    expect(seen).toEqual([0, 2, 3])
  } finally {
    for (const listener of before) process.on("uncaughtException", listener)
  }
})
