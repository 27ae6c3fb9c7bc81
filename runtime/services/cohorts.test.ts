import { once } from "node:events"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../testing/property.ts"
import { makeCohorts } from "./cohorts.ts"

const many = () => 8

/** `count` requests that go through two stages; returns the order in which they did. */
const stagesOf = async (count: number): Promise<readonly string[]> => {
  const cohorts = makeCohorts(() => count)
  const seen: string[] = []
  const request = (name: number) =>
    Effect.gen(function* () {
      seen.push(`first ${name}`)
      yield* cohorts.join
      seen.push(`second ${name}`)
    })
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

const turn = () => new Promise((resolve) => setImmediate(resolve))

test("long work of a cohort leaves turns to others", async () => {
  let now = 0
  const cohorts = makeCohorts(many, () => now)
  const seen: string[] = []
  const work = (name: string) => () => {
    seen.push(name)
    now += 5
  }
  cohorts.go(work("first"))
  cohorts.go(work("second"))
  setImmediate(() => seen.push("other"))
  await Effect.runPromise(cohorts.join)
  expect(seen).toEqual(["first", "other", "second"])
})

interface Work {
  readonly ms: number
  /** Comes while this is done. */
  readonly more: readonly Work[]
}
const works = fc.letrec<{ readonly works: readonly Work[] }>((tie) => ({
  works: fc.array(
    fc.record({
      ms: fc.integer({ min: 0, max: 6 }),
      more: fc.oneof({ maxDepth: 3 }, fc.constant([]), tie("works")),
    }),
    { maxLength: 6 },
  ),
})).works

test("whoever comes, and however long it takes, goes on once and in order", () =>
  fc.assert(
    fc.asyncProperty(works, async (first) => {
      let now = 0
      const cohorts = makeCohorts(many, () => now)
      const came: number[] = []
      const went: number[] = []
      const come = ({ ms, more }: Work) => {
        const number = came.push(came.length) - 1
        cohorts.go(() => {
          went.push(number)
          now += ms
          for (const one of more) come(one)
        })
      }
      for (const one of first) come(one)
      while (went.length < came.length) await turn()
      // a turn in which nobody waits
      await turn()
      expect(went).toEqual(came)
    }),
    { numRuns: runs(300) },
  ))

test("who leaves is not waited for", async () => {
  let served = 8
  const cohorts = makeCohorts(() => served)
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
  served = 0
  cohorts.go(() => seen.push("alone"))
  expect(seen).toEqual(["stayed", "alone"])
})

test("one that throws keeps no other from going on", async () => {
  const before = process.listeners("uncaughtException")
  process.removeAllListeners("uncaughtException")
  const thrown = once(process, "uncaughtException")
  try {
    const cohorts = makeCohorts(many)
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
