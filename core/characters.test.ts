import fc from "fast-check"
import { expect, it } from "vitest"
import { firstCharacters, isLongerThan, lastCharacters } from "./characters.ts"

// lone surrogates too: JSON may contain them
const texts = fc
  .array(fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", "字"))
  .map((parts) => parts.join(""))

it("counts and cuts by code points, as the iterator of strings does", () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 0, max: 12 }), (text, count) => {
      const points = [...text]
      expect(isLongerThan(text, count)).toBe(points.length > count)
      expect(firstCharacters(text, count)).toBe(points.slice(0, count).join(""))
      expect(lastCharacters(text, count)).toBe(
        points.slice(Math.max(0, points.length - count)).join(""),
      )
    }),
    { numRuns: 1000 },
  )
})
