import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../../testing/property.ts"
import { type AuditQuery, ExactSearch } from "./exact-search.ts"

const k = 3
const vectorOf = (angle: number) => Float32Array.from([Math.cos(angle), Math.sin(angle)])
const stored = (angles: readonly number[]) =>
  angles.map((angle, index) => ({ document: 1n, index, vector: vectorOf(angle) }))

/** The others by their distance from a chunk, nearest first. */
const nearestTo = (angles: readonly number[], self: number) =>
  stored(angles)
    .filter(({ index }) => index !== self)
    .sort(
      (a, b) =>
        Math.abs(angles[self]! - angles[a.index]!) - Math.abs(angles[self]! - angles[b.index]!),
    )

it("counts what of the k nearest was found, however the vectors come", () => {
  const angles = fc.uniqueArray(fc.integer({ min: 0, max: 300 }), { minLength: 2, maxLength: 30 })
  fc.assert(
    fc.property(
      angles,
      fc.nat(),
      fc.nat({ max: k }),
      fc.boolean(),
      (hundredths, pick, missed, back) => {
        const all = hundredths.map((angle) => angle / 100 + (angle % 7) / 10_000)
        const self = pick % all.length
        const near = nearestTo(all, self)
        const expected = near.slice(0, k)
        const kept = expected.slice(0, Math.max(0, expected.length - missed))
        const query: AuditQuery = {
          self: { document: 1n, index: self },
          vector: vectorOf(all[self]!),
          found: [{ document: 1n, index: self }, ...kept],
        }
        const search = new ExactSearch([query], k)
        const rows = stored(all)
        for (const row of back ? rows.reverse() : rows) search.compare(row)
        expect(search.recall()).toEqual({ exact: expected.length, found: kept.length, foreign: 0 })
      },
    ),
    { numRuns: runs(400) },
  )
})

it("takes any of those with the cosine of the last for right", () => {
  const same = stored([0, 1, 1, 1, 1])
  const search = new ExactSearch(
    [{ self: { document: 1n, index: 0 }, vector: vectorOf(0), found: same.slice(2) }],
    k,
  )
  for (const row of same) search.compare(row)
  expect(search.recall()).toEqual({ exact: 3, found: 3, foreign: 0 })
})
