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
