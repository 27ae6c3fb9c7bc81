import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { drawLikely, type LikelySettings } from "./likely.ts"

/** Weights of so many tokens, most of them small, the largest 1; sums are exact. */
const weights = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 65_536 }), fc.integer({ min: 0, max: 40 })), {
    minLength: 1,
    maxLength: 300,
    size: "max",
  })
  .map((values) => Float32Array.from([65_536, ...values], (value) => value / 65_536))
const settings = fc.record({
  topP: fc.oneof(
    fc.constant(1),
    fc.integer({ min: 1, max: 1_023 }).map((n) => n / 1_024),
  ),
  topK: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 320 })),
  minP: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 1, max: 1_024 }).map((n) => n / 1_024),
  ),
})

/** The first of the tokens at which the sum of their weights is at least `target`. */
const reaching = (all: Float32Array, ids: readonly number[], target: number): number => {
  let own = 0
  return ids.findIndex((id) => {
    own += all[id]!
    return own >= target
  })
}

/** What counts by the definitions: min-p, then top-k, then top-p of what is left. */
const keptOf = (all: Float32Array, { topP, topK, minP }: LikelySettings) => {
  const ids = [...all.keys()]
    .filter((id) => all[id]! > 0 && all[id]! >= minP)
    .sort((a, b) => all[b]! - all[a]! || a - b)
    .slice(0, topK || undefined)
  const sum = ids.reduce((total, id) => total + all[id]!, 0)
  return topP < 1 ? ids.slice(0, reaching(all, ids, topP * sum) + 1) : ids
}

test("draws from what counts, by weight", () => {
  let drawnFrom = 0
  fc.assert(
    fc.property(weights, settings, fc.integer({ min: 0, max: 1_023 }), (all, asked, part) => {
      const total = all.reduce((sum, weight) => sum + weight, 0)
      const drawn = drawLikely(all, total, asked, () => part / 1_024)
      if (drawn === undefined) return
      drawnFrom++
      const ids = keptOf(all, asked)
      const sum = ids.reduce((own, id) => own + all[id]!, 0)
      // where the sum exceeds the target: all are multiples of 2^-26
      expect(drawn).toBe(ids[reaching(all, ids, (sum * part) / 1_024 + 2 ** -27)])
    }),
    { numRuns: runs(2_000) },
  )
  expect(drawnFrom).toBeGreaterThan(runs(2_000) / 4)
})

test("draws nothing where the list is too short", () => {
  const never = () => {
    throw new Error("drawn")
  }
  const flat = new Float32Array(2_000).fill(1)
  const all = { topP: 1, topK: 0, minP: 0 }
  expect(drawLikely(flat, 2_000, { ...all, topP: 0.9 }, never)).toBeUndefined()
  expect(drawLikely(flat, 2_000, { ...all, topK: 1_500 }, never)).toBeUndefined()
  const few = Float32Array.of(1, 1e-7, 1e-7)
  expect(drawLikely(few, 1, { ...all, topK: 2 }, never)).toBeUndefined()
  expect(drawLikely(new Float32Array(3), 0, { ...all, minP: 0.5 }, never)).toBeUndefined()
  expect(drawLikely(few, 1, { ...all, topP: 0.5 }, () => 0.999)).toBe(0)
})
