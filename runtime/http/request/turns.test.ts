import { Effect, Fiber } from "effect"
import { expect, test } from "vitest"
import { makeTurns } from "./turns.ts"

/** Work that takes `ms` of a clock of its own. */
const fixture = () => {
  let nowMs = 0
  const turns = makeTurns(() => nowMs)
  const done: string[] = []
  let loops = 0
  const watch = () => {
    loops++
    if (isWatching) setImmediate(watch)
  }
  let isWatching = true
  setImmediate(watch)
  const piece = (name: string, ms: number) =>
    Effect.andThen(
      turns.take,
      Effect.sync(() => {
        nowMs += ms
        done.push(`${name}${loops}`)
      }),
    )
  const body = (name: string, pieces: number, ms: number) =>
    Effect.forEach(Array.from({ length: pieces }), () => piece(name, ms), { discard: true })
  const stop = () => {
    isWatching = false
  }
  return { turns, done, body, stop }
}

test("bodies get on at the same pace, whenever they came", async () => {
  const { done, body, stop } = fixture()
  await Effect.runPromise(
    Effect.all([body("a", 4, 1), body("b", 4, 1), body("c", 4, 1)], { concurrency: "unbounded" }),
  )
  stop()
  expect(done.map((name) => name[0]).join("")).toBe("abcabcabcabc")
})

test("between two slices of work the event loop goes round, however many wait", async () => {
  const { done, body, stop } = fixture()
  const bodies = Array.from({ length: 30 }, () => body("x", 2, 1.5))
  await Effect.runPromise(Effect.all(bodies, { concurrency: "unbounded", discard: true }))
  stop()
  // 1.5 ms are less than a slice, 3 ms more
  const inOneLoop = done.map((name) => done.filter((other) => other === name).length)
  expect(Math.max(...inOneLoop)).toBe(2)
})

test("who left is not waited for", async () => {
  const { done, body, stop } = fixture()
  const left = Effect.runFork(body("a", 1, 1))
  const stays = Effect.runFork(body("b", 1, 1))
  await Effect.runPromise(Fiber.interrupt(left))
  await Effect.runPromise(Fiber.join(stays))
  stop()
  expect(done.map((name) => name[0])).toEqual(["b"])
})
