import { expect, test } from "vitest"
import { Drafts } from "./prompt-lookup.ts"

test("guesses what followed the same tokens the last time", () => {
  expect(new Drafts().guess([1, 2, 3, 4, 5, 1, 2, 3])).toEqual([4, 5, 1])
  expect(new Drafts().guess([1, 2, 3, 9, 0, 1, 2, 3, 8, 0, 1, 2, 3])).toEqual([8, 0, 1])
  expect(new Drafts().guess([1, 2, 3, 4, 9, 2, 3])).toEqual([])
  expect(new Drafts().guess([1, 2, 3, 4])).toEqual([])
  expect(new Drafts().guess([])).toEqual([])
})

test("guesses more after a guess that came true, and stops guessing for a while when guesses fail", () => {
  const ids = [...Array.from({ length: 12 }, (_, i) => i), 0, 1, 2]
  const drafts = new Drafts()
  drafts.learn(3, 3)
  expect(drafts.guess(ids)).toHaveLength(7)
  for (let i = 0; i < 8; i++) drafts.learn(3, 0)
  expect(drafts.guess(ids)).toEqual([])
  for (let i = 0; i < 30; i++) drafts.guess(ids)
  expect(drafts.guess(ids)).toHaveLength(3)
})
