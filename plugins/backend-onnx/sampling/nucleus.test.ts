import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../../testing/property.ts"
import { keepNucleus } from "./nucleus.ts"

const sumOf = (weights: Float32Array) => weights.reduce((sum, weight) => sum + weight, 0)
const idsOf = (weights: Float32Array) => [...weights.keys()].filter((id) => weights[id]! > 0)
const kept = (weights: Float32Array, topP: number) => {
  const left = weights.slice()
  const sum = keepNucleus(left, sumOf(weights), topP)
  return { ids: idsOf(left), left, sum }
}

const weight = fc.oneof(
  fc.constantFrom(0, 1, 0.5, 2 ** -149),
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.double({ min: -80, max: 0, noNaN: true }).map(Math.exp),
)
const topP = fc.oneof(
  fc.constantFrom(0, 1e-9, 0.5, 0.9, 0.999_999),
  fc.double({ min: 0, max: 0.999_999, noNaN: true }),
)
// sums in a different order round differently
const slack = 1e-9

it("keeps the fewest of the likeliest tokens that have the share, and changes none of them", () => {
  fc.assert(
    fc.property(fc.array(weight, { maxLength: 300 }), topP, (list, share) => {
      const weights = Float32Array.from([...list, 1])
      const all = sumOf(weights)
      const order = idsOf(weights).sort((a, b) => weights[b]! - weights[a]! || a - b)
      const { ids, left, sum } = kept(weights, share)
      expect(ids).toEqual(order.slice(0, ids.length).sort((a, b) => a - b))
      for (const id of ids) expect(left[id]).toBe(weights[id])
      expect(sum).toBeCloseTo(sumOf(left), 6)
      expect(sum).toBeGreaterThanOrEqual(share * all * (1 - slack))
      const withoutLast = sum - weights[order[ids.length - 1]!]!
      if (ids.length > 1) expect(withoutLast).toBeLessThan(share * all * (1 + slack) + 1e-30)
    }),
    { numRuns: runs(500) },
  )
})

it("serves a large vocabulary, and a view of a larger buffer", () => {
  const weights = new Float32Array(50_002)
    .subarray(2)
    .map((_, id) => 1 / (1 + ((id * 7919) % 50_000)))
  const { ids, sum } = kept(weights, 0.7)
  expect(ids.length).toBeLessThan(5_000)
  expect(sum / sumOf(weights)).toBeCloseTo(0.7, 3)
})

it("keeps one token for a share of 0, of equal ones the first", () =>
  expect(kept(Float32Array.of(0.2, 1, 1), 0)).toMatchObject({ ids: [1], sum: 1 }))
