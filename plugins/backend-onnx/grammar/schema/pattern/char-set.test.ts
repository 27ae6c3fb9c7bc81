import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../../../testing/property.ts"
import {
  type CharSet,
  charsOfProperty,
  contains,
  intersection,
  negated,
  partition,
  union,
} from "./char-set.ts"

const code = fc.oneof(
  fc.integer({ min: 0, max: 0x10ffff }),
  fc.integer({ min: 0, max: 20 }),
  fc.constantFrom(0xd7ff, 0xd800, 0xdfff, 0xe000, 0xffff, 0x10000, 0x10ffff),
)
const set = fc
  .array(fc.tuple(code, fc.integer({ min: 0, max: 4 })), { maxLength: 5 })
  .map(
    (ranges): CharSet =>
      union(ranges.map(([first, more]) => [first, Math.min(first + more, 0x10ffff)])),
  )

test("sets are combined character by character", () => {
  fc.assert(
    fc.property(fc.array(set, { minLength: 1, maxLength: 4 }), fc.array(code), (sets, codes) => {
      const [a, b = a] = sets as [CharSet, CharSet?]
      const parts = partition(sets)
      for (const one of [...codes, ...sets.flat()]) {
        expect(contains(union([a, b]), one)).toBe(contains(a, one) || contains(b, one))
        expect(contains(intersection(a, b), one)).toBe(contains(a, one) && contains(b, one))
        expect(contains(negated(a), one)).toBe(!contains(a, one))
        const holding = parts.filter((part) => contains(part, one))
        expect(holding).toHaveLength(1)
        for (const given of sets)
          expect(intersection(holding[0]!, given)).toEqual(contains(given, one) ? holding[0] : [])
      }
    }),
    { numRuns: runs(400) },
  )
})

test("properties are those of this process", () => {
  for (const property of ["{L}", "{Lu}", "{Script=Greek}", "{Emoji}", "{Any}"]) {
    const chars = charsOfProperty(property)!
    const rule = new RegExp(`^\\p${property}$`, "u")
    for (let one = 0; one <= 0x10ffff; one += one < 0x500 ? 1 : 97)
      // an `expect` for each of them takes seconds
      if (
        (one < 0xd800 || one > 0xdfff) &&
        contains(chars, one) !== rule.test(String.fromCodePoint(one))
      )
        expect.fail(`${property} ${one}`)
  }
  expect(charsOfProperty("{Foo}")).toBeUndefined()
})
