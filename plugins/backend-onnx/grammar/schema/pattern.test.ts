import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../../testing/property.ts"
import { GrammarInstance } from "../grammar-instance.ts"
import { byteVocabulary } from "../grammar-vocabulary.ts"
import { ecmaPattern, PatternRefused, wholePattern } from "./pattern.ts"

const instance = new GrammarInstance(byteVocabulary())
const accepts = (pattern: string, text: string): boolean => {
  const matcher = instance.compile(
    "schema",
    JSON.stringify({
      "x-guidance": { json_allowed_escapes: 'nrbtf\\"' },
      type: "string",
      pattern: wholePattern(pattern),
    }),
  )
  const accepted =
    Buffer.from(JSON.stringify(text)).every((byte) => instance.consume(matcher, byte)) &&
    instance.isAccepting(matcher)
  instance.free(matcher)
  return accepted
}

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

test("what can't be kept is refused", () => {
  for (const given of [
    "a(?=b)",
    "(?<!a)b",
    "(a)\\1",
    "\\bword",
    "a^b",
    "a$b",
    "(a$)b",
    "(^a)+",
    "(?i:a)",
    "[",
    "(",
    "a{20000}",
    "\\ud800",
    "[]",
    "*a",
  ]) {
    expect(() => wholePattern(given), given).toThrow(PatternRefused)
  }
})
