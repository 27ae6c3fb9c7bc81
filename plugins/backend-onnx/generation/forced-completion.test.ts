import { expect, test } from "vitest"
import { type CompletionSearch, ForcedCompletion } from "./forced-completion.ts"

const completionOf = (length: number): readonly number[] =>
  Array.from({ length }, (_, i) => 100 + i)

const searchOf = (find: (most: number) => readonly number[] | undefined): CompletionSearch => {
  let found: readonly number[] | undefined
  return {
    begin: (most) => {
      found = find(most)
    },
    result: () => found,
  }
}

/** Writes tokens outside of the known completion, and counts the searches. */
const write = (budget: number, lengthAt: (left: number) => number | undefined) => {
  const asked: number[] = []
  let left = budget
  const ask = (most: number) => {
    asked.push(left)
    const length = lengthAt(left)
    return length === undefined || length > most ? undefined : completionOf(length)
  }
  const forced = new ForcedCompletion(searchOf(ask), budget)
  forced.settle()
  while (left > 0 && !forced.isDue(left)) {
    left--
    forced.follow(1, left)
    if (!forced.settle()) return { asked, left: left + 1, completion: forced.completion }
  }
  return { asked, left, completion: forced.completion }
}

test("the way is taken when only it is left, and asked for rarely while the end is far", () => {
  const { asked, left, completion } = write(2_000, () => 10)
  expect([left, completion]).toEqual([10, completionOf(10)])
  expect(asked.filter((at) => at > 148).length).toBeLessThan(130)
  expect(asked.filter((at) => at <= 140).length).toBe(131)
})

test("a token that leaves no way is not taken: the way from before it is", () => {
  expect(write(120, (left) => (left < 60 ? 70 : 5))).toMatchObject({
    left: 60,
    completion: completionOf(5),
  })
})

test("a way that grows while the end is far is followed", () => {
  expect(write(1_000, (left) => (left > 500 ? 5 : 300))).toMatchObject({
    left: 300,
    completion: completionOf(300),
  })
})

test("where there is none, it is looked for ever more rarely, and taken when there is one", () => {
  expect(write(4_000, () => undefined).asked.length).toBeLessThan(12)
  expect(write(4_000, (left) => (left > 3_000 ? undefined : 10))).toMatchObject({ left: 10 })
})

test("what goes along the way needs no question", () => {
  let asked = 0
  const search = searchOf(() => {
    asked++
    return completionOf(50)
  })
  const forced = new ForcedCompletion(search, 60)
  expect(forced.isSearching).toBe(true)
  forced.settle()
  for (let i = 0; i < 10; i++) {
    expect(forced.follow(100 + i, 59 - i)).toBe(false)
    expect(forced.isSearching).toBe(false)
  }
  expect([asked, forced.completion?.length, forced.isDue(50)]).toEqual([1, 40, false])
})
