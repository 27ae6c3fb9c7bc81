import { Effect, Schema } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { decodeQuery, isApiError, PageQuery, type Strings, toList } from "../../core/index.ts"
import { readTime, textFilter } from "./list-query.ts"

const outcome = <A>(effect: Effect.Effect<A, unknown>) =>
  Effect.runSync(
    effect.pipe(
      Effect.catch((error) =>
        Effect.succeed(isApiError(error) ? `400 ${error.param}` : "another error"),
      ),
    ),
  )
const time = (name: "from" | "to", text: string) => {
  const at = outcome(readTime({ [name]: text }, name))
  return at instanceof Date ? at.toISOString() : at
}

it("reads Unix seconds and days; a day as `to` is meant whole", () => {
  expect(time("from", "1767225600")).toBe("2026-01-01T00:00:00.000Z")
  expect(time("to", "1767225600")).toBe("2026-01-01T00:00:00.000Z")
  expect(time("from", "2026-01-31")).toBe("2026-01-31T00:00:00.000Z")
  expect(time("to", "2026-01-31")).toBe("2026-02-01T00:00:00.000Z")
  expect(time("from", "2028-02-29")).toBe("2028-02-29T00:00:00.000Z")
  expect(time("from", "0")).toBe("1970-01-01T00:00:00.000Z")
  expect([outcome(readTime({}, "from")), outcome(readTime({ to: "" }, "to"))]).toEqual([
    undefined,
    undefined,
  ])
})

it.each([
  "2026-02-30",
  "2026-13-01",
  "2026-1-1",
  "26-01-01",
  "2027-02-29",
  "-1",
  "1.5",
  "1e9",
  "999999999999",
  "yesterday",
  "2026-01-01T00:00:00Z",
  " 5",
  "\0",
  "0x10",
])("refuses the time %j", (text) => {
  expect([time("from", text), time("to", text)]).toEqual(["400 from", "400 to"])
})

it("answers any text with a date or a 400", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.stringMatching(/^\d{4}-\d\d-\d\d$/),
        fc.stringMatching(/^\d{1,14}$/),
      ),
      (text) => {
        expect(time("to", text) ?? "no time").toMatch(text === "" ? /^no time$/ : /^400 to$|Z$/)
        const page = outcome(decodeQuery(PageQuery, { limit: text }))
        const isWhole = /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 100
        expect(page).toEqual(isWhole ? { limit: Number(text) } : "400 limit")
      },
    ),
  )
})

it("reads filters", () => {
  const schema = Schema.Struct({ q: textFilter(3) })
  const filter = (query: Strings) => {
    const read = outcome(decodeQuery(schema, query))
    return typeof read === "string" ? read : read.q
  }
  const queries: readonly Strings[] = [{}, { q: "" }, { q: "🔑🔑🔑" }, { q: "abcd" }, { q: "a\0" }]
  expect(queries.map(filter)).toEqual([undefined, "", "🔑🔑🔑", "400 q", "400 q"])
})

it("an empty list has no first and no last", () => {
  expect(toList([], false)).toEqual({
    object: "list",
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  })
})
