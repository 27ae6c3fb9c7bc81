import { expect, test } from "vitest"
import { PromptLookup } from "./prompt-lookup.ts"

test("guesses what followed the same tokens the last time", () => {
  expect(new PromptLookup().draft([1, 2, 3, 4, 5, 1, 2, 3])).toEqual([4, 5, 1])
  expect(new PromptLookup().draft([1, 2, 3, 9, 0, 1, 2, 3, 8, 0, 1, 2, 3])).toEqual([8, 0, 1])
  expect(new PromptLookup().draft([1, 2, 3, 4, 9, 2, 3])).toEqual([])
  expect(new PromptLookup().draft([1, 2, 3, 4])).toEqual([])
  expect(new PromptLookup().draft([])).toEqual([])
})

test("guesses more after a guess that came true, and stops guessing for a while when guesses fail", () => {
  const ids = [...Array.from({ length: 12 }, (_, i) => i), 0, 1, 2]
  const lookup = new PromptLookup()
  lookup.record(3, 3)
  expect(lookup.draft(ids)).toHaveLength(7)
  for (let i = 0; i < 8; i++) lookup.record(3, 0)
  expect(lookup.draft(ids)).toEqual([])
  for (let i = 0; i < 30; i++) lookup.draft(ids)
  expect(lookup.draft(ids)).toHaveLength(3)
})
