import { Effect } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import type { Workers } from "../../../core/index.ts"
import { fakeLog } from "../../../testing/index.ts"
import type { CountTokensInput } from "./count-tokens-job.ts"
import { grouped, isFarTooLong, oneAtATime, pieceCharacters } from "./long-texts.ts"

/** Counts a token for every `characters`, and remembers what it was asked. */
const countingWorkers = (characters: number) => {
  const asked: string[] = []
  const run = (_module: URL, { text }: CountTokensInput) =>
    Effect.sync(() => {
      asked.push(text)
      return Math.ceil(text.length / characters)
    })
  return { asked, workers: { run } as unknown as Workers }
}
const user = (content: string) => ({ role: "user" as const, content })

test("far too long texts are refused before all of them is read", async () => {
  const { asked, workers } = countingWorkers(4)
  const far = (messages: readonly ReturnType<typeof user>[]) =>
    Effect.runPromise(isFarTooLong(workers, fakeLog(), "folder", { messages }, 8_192))
  expect(await far([user("x".repeat(8_000_000))])).toBe(true)
  expect(asked.length).toBeLessThan((3 * 4 * 8_192) / pieceCharacters)
  asked.length = 0
  expect(await far([user("x".repeat(4 * 8_192))])).toBe(false)
  expect(asked).toEqual([])
})

test("tools count, reasoning does not: a template may leave it out", async () => {
  const { workers } = countingWorkers(4)
  const far = (request: Parameters<typeof isFarTooLong>[3]) =>
    Effect.runPromise(isFarTooLong(workers, fakeLog(), "folder", request, 8_192))
  const long = "x".repeat(400_000)
  const tool = { name: "f", description: long }
  expect(await far({ messages: [user("x")], tools: [tool] })).toBe(true)
  expect(await far({ messages: [{ ...user("x"), reasoning: long }] })).toBe(false)
})

test("what may fit is never refused, and read whole", async () => {
  const { asked, workers } = countingWorkers(64)
  const messages = [user("x".repeat(400_000)), user(" "), user("y".repeat(100_000))]
  const isFar = isFarTooLong(workers, fakeLog(), "folder", { messages }, 8_192)
  expect(await Effect.runPromise(isFar)).toBe(false)
  expect(asked.join("")).toBe(messages.map(({ content }) => content).join(""))
})

test("groups keep all items in order, and none of several is larger than a piece", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(2 * pieceCharacters)), (sizes) => {
      const groups = grouped(sizes, (size) => size)
      expect(groups.flat()).toEqual(sizes)
      for (const group of groups)
        if (group.length > 1)
          expect(group.reduce((a, b) => a + b)).toBeLessThanOrEqual(pieceCharacters)
    }),
  )
})

test("pieces of long texts go one after another, and who leaves is not waited for", async () => {
  let running = 0
  let most = 0
  const piece = oneAtATime(
    Effect.gen(function* () {
      most = Math.max(most, ++running)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      running--
    }),
  )
  const left = oneAtATime(Effect.never).pipe(Effect.timeoutOption("1 millis"))
  await Effect.runPromise(
    Effect.all([piece, left, piece, piece], { concurrency: "unbounded", discard: true }),
  )
  expect([most, running]).toEqual([1, 0])
})
