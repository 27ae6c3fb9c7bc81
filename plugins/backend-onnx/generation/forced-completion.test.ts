import { expect, test } from "vitest"
import { ForcedCompletion } from "./forced-completion.ts"

const wayOf = (length: number): readonly number[] => Array.from({ length }, (_, i) => 100 + i)

/** Writes tokens that are on no way, and counts how often the way is asked for. */
const write = (budget: number, lengthAt: (left: number) => number | undefined) => {
  const asked: number[] = []
  let left = budget
  const ask = (most: number) => {
    asked.push(left)
    const length = lengthAt(left)
    return length === undefined || length > most ? undefined : wayOf(length)
  }
  const wayOut = new ForcedCompletion(ask, budget)
  while (left > 0 && !wayOut.isDue(left)) {
    left--
    if (!wayOut.follow(1, left)) return { asked, left: left + 1, way: wayOut.way }
  }
  return { asked, left, way: wayOut.way }
}

test("the way is taken when only it is left, and asked for rarely while the end is far", () => {
  const { asked, left, way } = write(2_000, () => 10)
  expect([left, way]).toEqual([10, wayOf(10)])
  expect(asked.filter((at) => at > 148).length).toBeLessThan(130)
  expect(asked.filter((at) => at <= 140).length).toBe(131)
})

test("a token that leaves no way is not taken: the way from before it is", () => {
  expect(write(120, (left) => (left < 60 ? 70 : 5))).toMatchObject({ left: 60, way: wayOf(5) })
})

test("a way that grows while the end is far is followed", () => {
  expect(write(1_000, (left) => (left > 500 ? 5 : 300))).toMatchObject({
    left: 300,
    way: wayOf(300),
  })
})

test("where there is none, it is looked for ever more rarely, and taken when there is one", () => {
  expect(write(4_000, () => undefined).asked.length).toBeLessThan(12)
  expect(write(4_000, (left) => (left > 3_000 ? undefined : 10))).toMatchObject({ left: 10 })
})

test("what goes along the way needs no question", () => {
  let asked = 0
  const wayOut = new ForcedCompletion(() => {
    asked++
    return wayOf(50)
  }, 60)
  for (let i = 0; i < 10; i++) expect(wayOut.follow(100 + i, 59 - i)).toBe(true)
  expect([asked, wayOut.way?.length, wayOut.isDue(50)]).toEqual([1, 40, false])
})
