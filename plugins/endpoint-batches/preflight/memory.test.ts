import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { CustomIds } from "./custom-ids.ts"
import { Sample } from "./sample.ts"

describe("custom ids", () => {
  it("are distinguished as by a map, however many there are", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.nat({ max: 3_000 }).map(String)), {
          maxLength: 5_000,
          size: "max",
        }),
        (ids) => {
          const seen = new CustomIds()
          const first = new Map<string, number>()
          const wrong = ids.filter((id, at) => {
            const earlier = first.get(id)
            if (earlier === undefined) first.set(id, at + 1)
            return seen.add(id, at + 1) !== earlier
          })
          expect(wrong).toEqual([])
        },
      ),
      { numRuns: 30 },
    )
  })
})

const placesOf = (count: number) => {
  const sample = new Sample()
  for (let n = 0; n < count; n++) sample.add({ line: n + 1, offset: n, end: n + 1 })
  return { lines: sample.positions.map(({ line }) => line), seen: sample.seen }
}

describe("a sample", () => {
  it("is the whole of a short file", () => {
    expect(placesOf(50).lines).toEqual(Array.from({ length: 50 }, (_, n) => n + 1))
  })

  it("is 50 lines from all over a longer one, the same ones every time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 51, max: 60_000 }), (count) => {
        const { lines, seen } = placesOf(count)
        expect([seen, lines.length]).toEqual([count, 50])
        expect(lines).toEqual(placesOf(count).lines)
        expect(lines).toEqual([...new Set(lines)].sort((a, b) => a - b))
        for (const third of [0, 1, 2])
          expect(
            lines.filter((line) => Math.floor(((line - 1) * 3) / count) === third).length,
          ).toBeGreaterThan(3)
      }),
      { numRuns: 100 },
    )
  })

  it.each([2, 3, 7, 16, 64])(
    "has about as many of each kind where %i kinds of lines take turns",
    (kinds) => {
      const { lines } = placesOf(50_000)
      const lower = lines.filter((line) => line % kinds < kinds / 2).length
      expect(Math.abs(lower - (50 * Math.ceil(kinds / 2)) / kinds)).toBeLessThan(12)
    },
  )
})
