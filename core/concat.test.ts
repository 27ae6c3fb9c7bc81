import { Effect, Exit, Stream } from "effect"
import { expect, test } from "vitest"
import { concat } from "./concat.ts"

test("the second stream follows the whole first one, once what that one holds is released", async () => {
  const seen: string[] = []
  const note = (what: string) => Effect.sync(() => void seen.push(what))
  const first = Stream.ensuring(Stream.make(1, 2), note("released"))
  const second = Stream.fromEffect(Effect.as(note("begun"), 3))
  const all = await Effect.runPromise(Stream.runCollect(concat(first, second)))
  expect([...all]).toEqual([1, 2, 3])
  expect(seen).toEqual(["released", "begun"])
})

test("a first stream that fails has no second one", async () => {
  let begun = false
  const second = Stream.fromEffect(
    Effect.sync(() => {
      begun = true
    }),
  )
  const exit = await Effect.runPromiseExit(
    Stream.runDrain(concat(Stream.concat(Stream.make(1), Stream.fail("broken")), second)),
  )
  expect(exit).toEqual(Exit.fail("broken"))
  expect(begun).toBe(false)
})

test("a second stream that fails fails the whole, after what was first", async () => {
  const seen: number[] = []
  const exit = await Effect.runPromiseExit(
    Stream.runForEach(concat(Stream.make(1, 2), Stream.fail("broken")), (one) =>
      Effect.sync(() => void seen.push(one)),
    ),
  )
  expect(seen).toEqual([1, 2])
  expect(exit).toEqual(Exit.fail("broken"))
})

test("whoever leaves early releases the first and begins no second one", async () => {
  const seen: string[] = []
  const first = Stream.ensuring(
    Stream.make(1, 2),
    Effect.sync(() => void seen.push("released")),
  )
  const second = Stream.fromEffect(Effect.sync(() => void seen.push("begun")))
  await Effect.runPromise(Stream.runDrain(Stream.take(concat(first, second), 1)))
  expect(seen).toEqual(["released"])
})
