import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { CustomIds } from "./custom-ids.ts"
import { Sample } from "./sample.ts"

describe("custom ids", () => {
  it("are told apart like a map tells them, however many there are", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.nat({ max: 3_000 }).map(String)), { maxLength: 5_000, size: "max" }), (ids) => {
        const seen = new CustomIds()
        const first = new Map<string, number>()
        const wrong = ids.filter((id, at) => {
          const earlier = first.get(id)
          if (earlier === undefined) first.set(id, at + 1)
          return seen.add(id, at + 1) !== earlier
        })
        expect(wrong).toEqual([])
      }),
      { numRuns: 30 },
    )
  })
})

const placesOf = (count: number) => {
  const sample = new Sample()
  for (let n = 0; n < count; n++) sample.add({ line: n + 1, offset: n, end: n + 1 })
  return { lines: sample.places.map(({ line }) => line), seen: sample.seen }
}

describe("a sample", () => {
  it("is the whole of a short file", () => {
    expect(placesOf(50).lines).toEqual(Array.from({ length: 50 }, (_, n) => n + 1))
  })

  it("is evenly spread over a file of any length", () => {
    fc.assert(
      fc.property(fc.integer({ min: 51, max: 60_000 }), (count) => {
        const { lines, seen } = placesOf(count)
        const steps = new Set(lines.slice(1).map((line, at) => line - lines[at]!))
        expect([seen, lines[0], steps.size]).toEqual([count, 1, 1])
        expect(lines.length).toBeGreaterThanOrEqual(25)
        expect(lines.length).toBeLessThanOrEqual(50)
        expect(count - lines.at(-1)!).toBeLessThan([...steps][0]!)
      }),
      { numRuns: 100 },
    )
  })
})
