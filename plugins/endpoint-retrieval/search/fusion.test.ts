import fc from "fast-check"
import { expect, it } from "vitest"
import { fuse, type Ranked, strongOf } from "./fusion.ts"
import { nameOf } from "./passages.ts"

const list = (...indices: readonly number[]): readonly Ranked[] =>
  indices.map((index, at) => ({ document: 1n, index, score: 1 / (at + 1) }))

it("sums 1 / (60 + rank) of each list, scaled to 1 for the first of both", () => {
  const fused = fuse([
    { ranked: list(7, 8), weight: 0.5 },
    { ranked: list(7, 9), weight: 0.5 },
  ])
  expect(fused.map(({ index }) => index)).toEqual([7, 8, 9])
  expect(fused.map(({ score }) => score)).toEqual([1, 30.5 / 62, 30.5 / 62])
})

it("a list without weight has no say", () => {
  const lists = [
    { ranked: list(1, 2), weight: 1 },
    { ranked: list(3, 1), weight: 0 },
  ]
  expect(fuse(lists).map(({ index }) => index)).toEqual([1, 2])
})

it("takes chunks of half of the best score and more, none from an empty list", () => {
  expect(strongOf(list(1, 2, 3)).map(({ index }) => index)).toEqual([1, 2])
  expect(strongOf([])).toEqual([])
})

it("holds each chunk once, within 0 and 1, and what is first on all lists first", () => {
  const ranked = fc
    .uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 20 })
    .map((indices) => list(0, ...indices))
  const weight = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(ranked, ranked, weight, (a, b, w) => {
      const fused = fuse([
        { ranked: a, weight: w },
        { ranked: b, weight: 1 - w },
      ])
      expect(new Set(fused.map(nameOf)).size).toBe(fused.length)
      expect(fused[0]).toMatchObject({ index: 0, score: expect.closeTo(1, 9) })
      for (const [at, { score }] of fused.entries()) {
        expect(score > 0 && score <= 1 + 1e-9).toBe(true)
        expect(score).toBeLessThanOrEqual(fused[at - 1]?.score ?? 2)
      }
    }),
  )
})
