import fc from "fast-check"
import { expect, it } from "vitest"
import { firstCharacters, hasHiddenCharacters, isLongerThan, isVisible } from "./characters.ts"

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
    }),
    { numRuns: 1000 },
  )
})

it("knows the characters that hide in a name, and none that scripts and emoji need", () => {
  const bidirectional = ["\u061c", "\u200e", "\u200f", ..."\u202a\u202b\u202c\u202d\u202e"]
  const isolates = [..."\u2066\u2067\u2068\u2069"]
  const invisible = [..."\u00ad\u034f\u115f\u180e\u200b\u2060\u2064\u3164\ufeff\uffa0\u{e0041}"]
  const control = [..."\0\t\n\r\u001b\u007f\u0085\u2028\u2029", "\ud83d"]
  for (const character of [...bidirectional, ...isolates, ...invisible, ...control])
    expect([character, hasHiddenCharacters(`a${character}b`)]).toEqual([character, true])
  for (const name of ["kunci-1", "مفتاح", "می‌خواهم", "👨‍👩‍👧", "❤️", "葛\u{e0100}城", "नमस्ते", "a b"])
    expect([name, hasHiddenCharacters(name), isVisible(name)]).toEqual([name, false, true])
  for (const blank of ["", " ", "\u00a0", "\u200d", "\ufe0f", "\u0301"])
    expect([blank, isVisible(blank)]).toEqual([blank, false])
})
