import { expect, it } from "vitest"
import { bm25, ndcg } from "./ranking.ts"

const grades = new Map([
  [4, 3],
  [7, 1],
])

it("is 1 for the best order and 0 without a relevant document among ten", () => {
  expect(ndcg([4, 7, 1], grades)).toBe(1)
  expect(ndcg([0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 4], grades)).toBe(0)
  expect(ndcg([], grades)).toBe(0)
  expect(ndcg([1], new Map())).toBe(0)
})

it("discounts by the logarithm of the rank", () => {
  const best = 7 + 1 / Math.log2(3)
  expect(ndcg([7, 4], grades)).toBeCloseTo((1 + 7 / Math.log2(3)) / best, 12)
  expect(ndcg([1, 4], grades)).toBeCloseTo(7 / Math.log2(3) / best, 12)
})

it("counts a document that is found twice once", () => {
  expect(ndcg([4, 4, 4, 7], grades)).toBe(1)
})

it("ranks by BM25: rare words before common ones, short documents before long ones", () => {
  const rank = bm25([
    "the ship left the harbour",
    "the ship and the ship and the ship",
    "a lighthouse",
    "the lighthouse stands on a rock far out in the cold and stormy sea",
    "bread",
  ])
  expect(rank("The lighthouse")).toEqual([2, 3, 1, 0])
  expect(rank("nothing of this")).toEqual([])
})
