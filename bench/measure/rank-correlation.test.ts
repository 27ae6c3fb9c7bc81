import fc from "fast-check"
import { expect, test } from "vitest"
import { spearman } from "./rank-correlation.ts"

test("is Pearson's correlation of the ranks; equal values share theirs", () => {
  expect(spearman([1, 2, 3, 4], [10, 20, 30, 1_000])).toBeCloseTo(1, 12)
  expect(spearman([1, 2, 3, 4], [4, 3, 2, 1])).toBeCloseTo(-1, 12)
  expect(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])).toBeCloseTo(0.8, 12)
  // ranks 1.5 1.5 3 4 and 1 2 3.5 3.5
  expect(spearman([7, 7, 8, 9], [1, 2, 3, 3])).toBeCloseTo(8 / 9, 12)
})

test("rising functions of the values change nothing", () => {
  const values = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 8, maxLength: 8 })
  fc.assert(
    fc.property(values, values, (a, b) => {
      const [before, after] = [
        spearman(a, b),
        spearman(
          a.map((x) => x ** 3),
          b,
        ),
      ]
      expect(Number.isNaN(before) ? 0 : before).toBeCloseTo(Number.isNaN(after) ? 0 : after, 9)
    }),
  )
})
