import fc from "fast-check"
import { expect, test } from "vitest"
import { between, exceptTexts, restricted, union } from "./complements.ts"

const wholeOf = (pattern: string): RegExp =>
  new RegExp(
    pattern.replaceAll("(?s:.*)", "[^]*").replaceAll("(?s:.)", "[^]").replaceAll("\\x{", "\\u{"),
    "u",
  )

const letters = ["a", "b", "\\", "é", "😀"]

test("exactly the texts of a set are left out", () => {
  const text = fc.array(fc.constantFrom(...letters), { maxLength: 4 }).map((all) => all.join(""))
  fc.assert(
    fc.property(fc.uniqueArray(text, { maxLength: 8 }), text, (texts, other) => {
      const { pattern = "^[^]*$" } = exceptTexts(texts) as { readonly pattern?: string }
      const whole = wholeOf(pattern)
      for (const one of [...texts, other, ...texts.map((known) => `${known}a`)])
        expect(whole.test(one), `${JSON.stringify(texts)}: ${one}`).toBe(!texts.includes(one))
    }),
  )
})

test("of long texts, those that begin alike are left out, too", () => {
  const long = "x".repeat(10_000)
  const { pattern } = exceptTexts([long]) as { readonly pattern: string }
  expect(pattern.length).toBeLessThan(20_000)
  const whole = wholeOf(pattern)
  for (const [text, isLeft] of [
    [long, false],
    ["x".repeat(100), true],
    ["x".repeat(102), false],
    [`${"x".repeat(99)}y`, true],
  ] as const)
    expect(whole.test(text), text.slice(-5)).toBe(isLeft)
})

test("numbers are between others", () => {
  expect(between([])).toEqual([{}])
  expect(between([3, 1, 3])).toEqual([
    { exclusiveMaximum: 1 },
    { exclusiveMinimum: 1, exclusiveMaximum: 3 },
    { exclusiveMinimum: 3 },
  ])
})

test("alternatives of other kinds are dropped, equal ones merged", () => {
  const text = { type: "string" }
  const list = { type: "array", minItems: 1 }
  expect(union([text, { anyOf: [text, list] }])).toEqual({ anyOf: [text, list] })
  expect(union([text, true])).toBe(true)
  expect(restricted({ anyOf: [text, list, { $ref: "#/$defs/a" }] }, new Set(["array"]))).toEqual({
    anyOf: [list, { $ref: "#/$defs/a" }],
  })
  expect(
    restricted({ allOf: [list, { anyOf: [text, { enum: [[]] }] }] }, new Set(["array"])),
  ).toEqual({ allOf: [list, { enum: [[]] }] })
})
