import { expect, test } from "vitest"
import { analyseSchema } from "../schema-report.ts"

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
