import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { jsonFault } from "./json-fault.ts"

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe("where a text stops being JSON", () => {
  it.each([
    ["", 0],
    ["  ", 2],
    ["{", 1],
    ['{"a"', 4],
    ['{"a" 1}', 5],
    ['{"a":}', 5],
    ['{"a":1,}', 7],
    ["[1,]", 3],
    ["[,1]", 1],
    ["[1 2]", 3],
    ["[1}", 2],
    ["{]", 1],
    ['{"a":1]', 6],
    ["{a:1}", 1],
    ['{"a":1}}', 7],
    ['{"a":1} {"b":2}', 8],
    ["[01]", 2],
    ["[-]", 1],
    ["[1.]", 2],
    ["nul", 0],
    ["NaN", 0],
    ['"ab', 3],
    ['"a\tb"', 2],
    ['"a\\xb"', 2],
    ['"a\\u12g4"', 2],
    ["\0", 0],
    ["\ufeff{}", 0],
  ])("%o", (text, at) => {
    expect(isJson(text)).toBe(false)
    expect(jsonFault(text)).toBe(at)
  })

  it("is nowhere in JSON", () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 5 }),
        fc.nat(4),
        (text, indent) =>
          jsonFault(text) === undefined &&
          jsonFault(JSON.stringify(JSON.parse(text), null, indent)) === undefined,
      ),
    )
  })

  it("is somewhere in what JSON.parse refuses, and what stands before it could go on", () => {
    const marks = fc
      .array(
        fc.constantFrom(
          "{",
          "}",
          "[",
          "]",
          ",",
          ":",
          '"',
          '"a"',
          "1",
          "-0.5e3",
          "true",
          " ",
          "\\",
          "\\n",
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join(""))
    fc.assert(
      fc.property(marks, (text) => {
        const at = jsonFault(text)
        expect(at === undefined).toBe(isJson(text))
        if (at === undefined) return
        const before = text.slice(0, at)
        expect(jsonFault(before) ?? before.length).toBeGreaterThanOrEqual(before.trimEnd().length)
      }),
      { numRuns: 2_000 },
    )
  })

  it("is found at any depth and in strings of megabytes", () => {
    expect(jsonFault("[".repeat(1_000_000))).toBe(1_000_000)
    expect(jsonFault(`"${"\\n".repeat(2_000_000)}`)).toBe(4_000_001)
  })
})
