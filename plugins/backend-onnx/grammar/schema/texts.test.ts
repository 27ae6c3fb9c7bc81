import { expect, test } from "vitest"
import { analyseSchema } from "../schema-report.ts"
import { wholePattern } from "./pattern.ts"

test("a length above the maximum is kept up to the maximum, and the verdict says so", () => {
  const { keywords, refused, enforced } = analyseSchema({ type: "string", maxLength: 65_535 })
  expect(refused).toBeUndefined()
  expect(enforced).toMatchObject({ maxLength: 20_000 })
  expect(keywords.find(({ keyword }) => keyword === "maxLength")).toMatchObject({
    verdict: "enforced",
    reason: "at most 20000 characters are written",
  })
})

test("a long minimum is checked on the finished text, one beyond the maximum refused", () => {
  const long = analyseSchema({ type: "string", minLength: 15_000 })
  expect(long.refused).toBeUndefined()
  expect(long.enforced).toMatchObject({ minLength: 10_000 })
  expect([...(long.guards?.keywords.keys() ?? [])]).toEqual([""])
  expect(analyseSchema({ type: "string", minLength: 1e9 }).refused).toMatchObject({
    keyword: "minLength",
    reason: "more than 20000 characters are not written",
  })
})

test("a bound that the pattern implies is not written", () => {
  const { enforced } = analyseSchema({
    type: "string",
    pattern: "^[a-z]{2,4}$",
    minLength: 1,
    maxLength: 100,
  })
  expect(enforced).not.toHaveProperty("minLength")
  expect(enforced).not.toHaveProperty("maxLength")
  expect(
    analyseSchema({ type: "string", pattern: "^[a-z]{5}$", maxLength: 4 }).enforced,
  ).toBeUndefined()
  expect(analyseSchema({ type: "string", pattern: "a$b" }).enforced).toBeUndefined()
})

test("a pattern that can't be written is checked on the finished text, within what can", () => {
  const { refused, enforced, guards } = analyseSchema({
    type: "string",
    pattern: "^(?!-)(?:[a-z]+\\d(?<!xy9)-){3}$",
  })
  expect(refused).toBeUndefined()
  expect([...(guards?.keywords.keys() ?? [])]).toEqual([""])
  expect(enforced).toMatchObject({ pattern: "^(?:(?:[a-z]+[0-9]\\x{2d}){3})$" })
  for (const pattern of ["(", "^([a-z]+)-\\1$"])
    expect(analyseSchema({ type: "string", pattern }).refused).toMatchObject({ keyword: "pattern" })
})

test("a pattern that must not match is written", () => {
  const { refused, guards } = analyseSchema({ type: "string", not: { pattern: "^x|y{2}$" } })
  expect([refused, guards]).toEqual([undefined, undefined])
})

test("the automata of a schema are bounded, whatever is remembered of other schemas", () => {
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
  const schema = {
    properties: Object.fromEntries(
      Array.from({ length: 120 }, (_, i) => [`p${i}`, { pattern: `^(?!${i}${letters})` }]),
    ),
  }
  const guarded = () => [...(analyseSchema(schema).guards?.keywords.keys() ?? [])]
  const first = guarded()
  expect(first.length).toBeGreaterThan(0)
  expect(first.length).toBeLessThan(120)
  expect(guarded()).toEqual(first)
})

const categories = [
  ..."L Lu Ll Lt LC Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs".split(
    " ",
  ),
]
const properties = [...categories, ...categories.map((one) => `gc=${one}`)].map(
  (name) => `\\p{${name}}`,
)
const matching = (from: number, to: number) => ({
  type: "string",
  pattern: `^[${properties.slice(from, to).join("")}]+$`,
})

test("a pattern names few Unicode properties, and so do all patterns of a schema", () => {
  const many = matching(0, 41)
  const reason = "more than 40 Unicode properties"
  expect(() => wholePattern(many.pattern)).toThrow(reason)
  expect(analyseSchema(many).refused).toMatchObject({ path: "/pattern", reason })
  // in places that are not read, too
  const each = (...schemas: readonly object[]) => ({ $defs: { ...schemas } })
  expect(() => analyseSchema(each(matching(0, 31), matching(30, 60)))).not.toThrow()
  const all = [matching(0, 31), matching(30, 60), { pattern: "\\p{Script=Greek}" }]
  expect(() => analyseSchema(each(...all))).toThrow("more than 60 properties")
})

test("an ordinary pattern of properties is kept", () => {
  const schema = { type: "string", pattern: "^[\\p{L}\\p{N}]+$" }
  const { refused, guards, enforced } = analyseSchema(schema)
  expect([refused, guards]).toEqual([undefined, undefined])
  expect(enforced?.pattern).toMatch(/^\^\(\?:\[0-9A-Za-z/)
})
