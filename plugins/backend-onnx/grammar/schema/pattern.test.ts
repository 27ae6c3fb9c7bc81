import fc from "fast-check"
import { beforeEach, expect, test } from "vitest"
import { runs } from "../../../../testing/property.ts"
import { GrammarInstance } from "../grammar-instance.ts"
import { byteVocabulary } from "../grammar-vocabulary.ts"
import {
  countPatternWork,
  ecmaPattern,
  PatternRefused,
  wholePattern,
  wholePatterns,
  widerPatterns,
  withoutMatch,
} from "./pattern.ts"

const instance = new GrammarInstance(byteVocabulary())
const acceptsAll = (patterns: readonly string[], texts: readonly string[]): readonly boolean[] => {
  let whole: number
  try {
    whole = instance.compile(
      "schema",
      JSON.stringify({
        "x-guidance": { json_allowed_escapes: 'nrbtf\\"' },
        allOf: patterns.map((pattern) => ({ type: "string", pattern })),
      }),
    )
  } catch (cause) {
    if (/Unsatisfiable/.test(String(cause))) return texts.map(() => false)
    throw cause
  }
  const found = texts.map((text) => {
    const matcher = instance.clone(whole)
    const isIn =
      Buffer.from(JSON.stringify(text)).every((byte) => instance.consume(matcher, byte)) &&
      instance.isAccepting(matcher)
    instance.free(matcher)
    return isIn
  })
  instance.free(whole)
  return found
}
beforeEach(countPatternWork)

const accepts = (pattern: string, text: string): boolean =>
  acceptsAll(wholePatterns(pattern).patterns, [text])[0]!

const atoms = fc.constantFrom(
  "a",
  "b",
  "0",
  ".",
  "\\d",
  "\\D",
  "\\w",
  "\\W",
  "\\s",
  "\\S",
  "[ab]",
  "[^a]",
  "[^\\d\\s]",
  "[a-c0-]",
  "[\\W_]",
  "\\-",
  "\\.",
  "\\u00e9",
  "\\x41",
  "é",
  "-",
  "/",
  "\\n",
)
const quantified = fc
  .tuple(atoms, fc.constantFrom("", "", "?", "*", "+", "{2}", "{1,2}", "*?"))
  .map(([atom, many]) => atom + many)
const sequence = fc.array(quantified, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(""))
const group = fc
  .tuple(sequence, sequence, fc.constantFrom("(", "(?:", "(?<n>"), fc.constantFrom("", "?", "+"))
  .map(([a, b, open, many]) => `${open}${a}|${b})${many}`)
const pattern = fc
  .tuple(
    fc.boolean(),
    fc.oneof(
      sequence,
      fc.tuple(sequence, group).map(([a, b]) => a + b),
      group,
    ),
    fc.boolean(),
    fc.option(sequence),
  )
  .map(
    ([start, body, end, other]) =>
      `${start ? "^" : ""}${body}${end ? "$" : ""}${other === null ? "" : `|${other}`}`,
  )
const text = fc.string({
  unit: fc.constantFrom(
    "a",
    "b",
    "c",
    "0",
    "9",
    "_",
    "-",
    ".",
    " ",
    "/",
    "A",
    "é",
    "\n",
    "\u2028",
    "\u00a0",
    "\u0085",
    "\ufeff",
    "😀",
    '"',
    "\\",
  ),
  maxLength: 5,
})

test("a pattern means what ECMAScript means by it", () => {
  fc.assert(
    fc.property(pattern, text, (given, written) => {
      expect(accepts(given, written), `${given} on ${JSON.stringify(written)}`).toBe(
        ecmaPattern(given).test(written),
      )
    }),
    { numRuns: runs(400) },
  )
})

test("an escape that means its character is no reason to read by halves of surrogate pairs", () => {
  for (const [given, yes, no] of [
    ["(\\-a|a)|\\W{2}a*?", ["a", "-a", "😀😀"], ["😀", "b"]],
    ["^[\\-+]\\_.$", ["-_😀", "+_a"], ["-_", ",_a"]],
    ["^[a\\-c]$", ["a", "-", "c"], ["b"]],
    ["^[\\]\\-]\\-$", ["]-", "--"], ["\\-"]],
  ] as const) {
    for (const one of yes) expect(accepts(given, one), `${given} ${one}`).toBe(true)
    for (const one of no) expect(accepts(given, one), `${given} ${one}`).toBe(false)
    for (const one of [...yes, ...no])
      expect(ecmaPattern(given).test(one), `${given} ${one}`).toBe(accepts(given, one))
  }
})

test("anchors count where they stand at an end, also in a group that is all there is", () => {
  for (const [given, yes, no] of [
    ["^a$|^b", ["a", "bc"], ["ab", "cb"]],
    ["^(a|b)$", ["a", "b"], ["ab"]],
    ["(?:^a$|b)", ["a", "xbx"], ["ax"]],
    ["^(^a|b$)$", ["a", "b"], ["ab"]],
    ["", ["", "x"], []],
  ] as const) {
    for (const one of yes) expect(accepts(given, one), `${given} ${one}`).toBe(true)
    for (const one of no) expect(accepts(given, one), `${given} ${one}`).toBe(false)
  }
})

const looks = fc.oneof(
  fc
    .tuple(fc.constantFrom("(?=", "(?!"), sequence, fc.constantFrom("", "$"))
    .map(([open, inside, end]) => `${open}${inside}${end})`),
  fc.tuple(fc.constantFrom("(?<=", "(?<!"), atoms).map(([open, inside]) => `${open}${inside})`),
)
const places = fc.oneof(
  sequence,
  looks,
  group,
  fc.constantFrom("^", "$", "\\b", "\\B", "-", "(?:(?!ab).)*", "(?:a(?=b|$)|b)+", "(?:b(?<!c))?"),
)
const looking = fc
  .tuple(
    fc.array(places, { minLength: 1, maxLength: 5 }),
    fc.constantFrom("", "^"),
    fc.constantFrom("", "$"),
  )
  .map(([parts, start, end]) => start + parts.join("").replaceAll("?<n>", "?:") + end)

const orRefused = <A>(make: () => A): A | undefined => {
  countPatternWork()
  try {
    return make()
  } catch (cause) {
    expect(cause).toBeInstanceOf(PatternRefused)
    return undefined
  }
}

test("lookarounds, word boundaries and anchors inside mean what ECMAScript means by them", () => {
  let kept = 0
  const tried = runs(600)
  fc.assert(
    fc.property(looking, fc.array(text, { minLength: 3, maxLength: 8 }), (given, written) => {
      // V8 also begins a match in the middle of a pair, and looks around itself from there
      const texts = /\(\?[<!]|\\b/i.test(given)
        ? written.map((one) => one.replaceAll("😀", "é"))
        : written
      const rule = ecmaPattern(given)
      const matching = texts.filter((one) => rule.test(one))
      expect(
        acceptsAll(orRefused(() => widerPatterns(given))?.patterns ?? [], matching),
        `wider than ${given}`,
      ).toEqual(matching.map(() => true))
      const whole = orRefused(() => wholePatterns(given))
      if (whole === undefined) return
      kept++
      const found = acceptsAll(whole.patterns, texts)
      for (const [i, one] of texts.entries()) {
        expect(found[i], `${given} on ${JSON.stringify(one)}`).toBe(rule.test(one))
        const length = [...one].length
        expect(!found[i] || (length >= whole.least && length <= whole.most), given).toBe(true)
      }
      const single = orRefused(() => wholePattern(given))
      if (single !== undefined) expect(acceptsAll([single], texts), given).toEqual(found)
    }),
    { numRuns: tried },
  )
  expect(kept).toBeGreaterThan(tried * 0.7)
})

test("the complement of a pattern is written", () => {
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 3, maxLength: 8 }), (given, texts) => {
      const others = orRefused(() => wholePatterns(withoutMatch(given)))
      if (others === undefined) return
      const rule = ecmaPattern(given)
      const found = acceptsAll(others.patterns, texts)
      for (const [i, one] of texts.entries())
        expect(found[i], `${given} on ${JSON.stringify(one)}`).toBe(!rule.test(one))
    }),
    { numRuns: runs(200) },
  )
})

test("lookarounds of schemas in use are written", () => {
  for (const [given, yes, no] of [
    ["^(?=.*[A-Z])(?=.*\\d).{8,}$", ["Abcdefg1", "1ABCDEFGH"], ["abcdefg1", "Abc1"]],
    ["^(?!-)(?!.*--)[a-z0-9-]{1,32}(?<!-)$", ["a", "a-b"], ["-a", "a-", "a--b", ""]],
    ["^(?!foo)", ["", "fo", "xfoo"], ["foo", "foobar"]],
    ["^(?!python$)[a-zA-Z-_.0-9]+$", ["pythons", "pytho", "a-b"], ["python", ""]],
    ["^((?!message|severity).)*$", ["mess", "a"], ["amessage", "severity"]],
    ["\\b(?:high|low)\\b", ["high", "so low!"], ["highs", "slow"]],
    ["^P(?!$)(\\d+Y)?(T(?=\\d)(\\d+H)?(\\d+M)?)?$", ["P1Y", "PT2M", "P1YT1H2M"], ["P", "PT", "P1"]],
    ["(?:^|\\n)--(?:$|\\n)", ["--", "a\n--\nb"], ["a--", "--b"]],
  ] as const)
    for (const one of [...yes, ...no]) {
      expect(accepts(given, one), `${given} on ${one}`).toBe(
        (yes as readonly string[]).includes(one),
      )
      expect(ecmaPattern(given).test(one), `${given} on ${one}`).toBe(accepts(given, one))
    }
})

test("a pattern of the older mode reads characters, not halves of surrogate pairs", () => {
  for (const [given, yes, no] of [
    ["^[\\w-.]{2}$", ["a-", ".b"], ["😀", "a😀"]],
    ["^\\${{ ?.}}$", ["${{ a}}", "${{😀}}"], ["${{}}"]],
    ["^a{,2}]\\_$", ["a{,2}]_"], ["aa]_"]],
    ["^.{1}[^\\w-]$", ["😀😀", "a."], ["a-", "😀"]],
  ] as const)
    for (const one of [...yes, ...no]) {
      expect(accepts(given, one), `${given} on ${one}`).toBe(
        (yes as readonly string[]).includes(one),
      )
      expect(ecmaPattern(given).test(one), `${given} on ${one}`).toBe(accepts(given, one))
    }
})

test("what no automaton of bounded size reads is refused", () => {
  for (const given of [
    "(a)\\1",
    "(?<!ab)b",
    "(?:a|b)*a(?:a|b){12}(?!c)",
    "(?:(?!ab)a?)*b",
    "(?i:a)",
    "\\p{Foo}\\_",
    "[",
    "(",
    "a{20000}",
    "\\ud800",
    "*a",
  ])
    expect(() => wholePatterns(given), given).toThrow(PatternRefused)
})

test("long, deep and explosive patterns are read or refused", () => {
  const long = "ab".repeat(20_000)
  expect(wholePatterns(`^${long}$`).least).toBe(40_000)
  const optional = "a?".repeat(3_000)
  expect(wholePatterns(`^${optional}$`).most).toBe(3_000)
  for (const given of [
    `${"(?:".repeat(3_000)}a${")".repeat(3_000)}`,
    `${"(?=a".repeat(300)}${")".repeat(300)}b`,
    `^(?!${optional})b`,
    `^(?!.*a.{300}b).*$`,
    `${"(?:a|(?!b)".repeat(200)}${")*".repeat(200)}$`,
    "(?:(?!a{1,9}){1,40}b){1,40}".repeat(20),
  ]) {
    orRefused(() => wholePatterns(given))
  }
})
