import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../../../testing/property.ts"
import { ecmaPattern, PatternRefused } from "../pattern.ts"
import { linearPattern, unreadPattern } from "./linear-pattern.ts"

const free = { spend: () => {} }
const matches = (pattern: string, text: string): boolean => linearPattern(pattern)(text, free)

const atom = fc.constantFrom(
  ...["a", "b", "0", ".", "-", "é", "😀", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\n", "\\-"],
  ...["[ab]", "[^a]", "[^\\d\\s]", "[a-c0-]", "[\\W_]", "[\\]\\\\]", "[😀-😂]", "\\u00e9", "\\x41"],
  ...["\\p{L}", "\\P{Lu}", "\\u{1f600}", "\\ud83d\\ude00", "\\_", "\\b", "\\B", "^", "$"],
)
const many = fc.constantFrom("", "", "", "?", "*", "+", "{2}", "{1,2}", "{0,}", "*?", "+?")
const { pattern } = fc.letrec<{ pattern: string; group: string; sequence: string }>((tie) => ({
  pattern: fc.array(tie("sequence"), { minLength: 1, maxLength: 2 }).map((all) => all.join("|")),
  sequence: fc
    .array(
      fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc
          .tuple(atom, many)
          .map(([one, times]) => (/^(?:\\[bB]|[$^])$/.test(one) ? one : one + times)),
        tie("group"),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => parts.join("")),
  group: fc
    .tuple(
      fc.constantFrom(...["(", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!"]),
      tie("pattern"),
      many,
    )
    .map(([open, inside, times]) => `${open}${inside})${/[=!]$/.test(open) ? "" : times}`),
}))
const text = fc.string({
  unit: fc.constantFrom(
    ...["a", "b", "c", "0", "9", "_", "-", ".", " ", "A", "é", "É", "\n", "\u2028", "\u00a0"],
    ...["😀", "😁", "\ud83d", '"', "\\", "]"],
  ),
  maxLength: 8,
})

/** Tries each position of the language: V8 also begins matches between halves of a pair. */
const matchesInV8 = ({ source, flags, unicode }: RegExp, written: string): boolean => {
  const sticky = new RegExp(source, `${flags}y`)
  const units = unicode ? [...written] : written.split("")
  const starts = units.map((_, i) => units.slice(0, i).join("").length)
  return [...starts, written.length].some((start) => {
    sticky.lastIndex = start
    return sticky.test(written)
  })
}

test("a pattern matches what the engine of this process matches", () => {
  fc.assert(
    fc.property(pattern, text, (given, written) => {
      let rule: RegExp
      try {
        rule = ecmaPattern(given)
      } catch {
        fc.pre(false)
        return
      }
      // a group that holds nothing else
      fc.pre(unreadPattern(given) !== "a repeated lookaround")
      const expected = matchesInV8(rule, written)
      const what = `${given} on ${JSON.stringify(written)}`
      expect(matches(given, written), what).toBe(expected)
      // a lookaround is never left to V8
      expect(matches(`(?=(?:${given}))`, written), what).toBe(expected)
    }),
    { numRuns: runs(1_000) },
  )
})

test("what backtracks without an end elsewhere is matched at once", () => {
  const text = `${"a".repeat(5_000)}!`
  for (const [given, isMatch] of [
    ["^(a+)+$", false],
    ["^(a|a)*$", false],
    ["^(?:a*)*b$", false],
    ["(?=(a+)+$)a", false],
    ["^(?!(a|aa)+$)", true],
    ["(?<=^(a|aa)+)!$", true],
  ] as const)
    expect(matches(given, text), given).toBe(isMatch)
})

test("the work of a match is counted", () => {
  let spent = 0
  const count = { spend: (steps: number) => (spent += steps) }
  linearPattern("^(a+)+$")("a".repeat(1_000), count)
  expect(spent).toBeGreaterThan(1_000)
  expect(spent).toBeLessThan(20_000)
})

test("what can't be matched without backtracking is refused", () => {
  for (const given of ["(a)\\1", "(?<n>a)\\k<n>", "a{30000}", "((a{100}){100}){100}", "(", "[b-a]"])
    expect(() => linearPattern(given), given).toThrow(PatternRefused)
  const deep = `${"(".repeat(100_000)}a${")".repeat(100_000)}`
  expect(() => linearPattern(deep)).toThrow(PatternRefused)
  for (const given of ["(?:){100000}", "(?:a{0}){99999}"])
    expect(() => linearPattern(given), given).toThrow(PatternRefused)
})
