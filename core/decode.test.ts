import { Cause, Effect, Exit, Option, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { decodeBody, decodeQuery, formatPath, optional } from "./decode.ts"
import { isApiError } from "./errors.ts"
import { pageQuery, wordQuery } from "./list.ts"

const Item = Schema.Union([
  Schema.String,
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("image"), url: Schema.String }),
])
const Body = Schema.Struct({
  name: Schema.String,
  count: optional(Schema.Int),
  items: optional(Schema.Array(Item)),
  options: optional(Schema.Struct({ deep: optional(Schema.Boolean) })),
})

const decode = (json: unknown) => Effect.runSyncExit(decodeBody(Body, json))
const refusal = (json: unknown) => {
  const exit = decode(json)
  return Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
}

describe("a body", () => {
  it("is decoded; null is as if absent, unknown fields are dropped", () => {
    expect(decode({ name: "a", count: null, other: [1] })).toEqual(
      Exit.succeed({ name: "a", count: null }),
    )
  })

  it.each<[string | undefined, unknown]>([
    [undefined, null],
    [undefined, [1]],
    [undefined, "text"],
    [undefined, 5],
    ["name", {}],
    ["name", { name: null }],
    ["count", { name: "a", count: 1.5 }],
    ["items", { name: "a", items: {} }],
    ["items[1]", { name: "a", items: ["x", 5] }],
    ["items[0].text", { name: "a", items: [{ type: "text", text: 5 }] }],
    ["items[0].url", { name: "a", items: [{ type: "image" }] }],
    ["options.deep", { name: "a", options: { deep: "yes" } }],
  ])("that is wrong at %s says so", (param, json) => {
    const error = refusal(json)
    expect([error?.code, error?.param]).toEqual(["invalid_request_error", param])
  })

  it("shows the field, never the value", () => {
    expect(refusal({ name: "a", count: "my secret" })?.message).toBe(
      "count: expected number | null",
    )
  })

  it("shows no shape of a schema", () => {
    const Kind = Schema.Struct({
      of: optional(Schema.Struct({ kind: Schema.Literal("a"), more: Schema.String })),
    })
    const message = (of: unknown) => Effect.runSync(Effect.flip(decodeBody(Kind, { of }))).message
    expect([message({ kind: "b", more: "" }), message(5)]).toEqual([
      "of: expected object",
      "of: expected object",
    ])
  })

  it("of any JSON is decoded or refused, and nothing throws", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.dictionary(
            fc.constantFrom("name", "count", "items", "options", "__proto__"),
            fc.jsonValue(),
          ),
        ),
        (json) => {
          const exit = decode(json)
          if (Exit.isFailure(exit))
            expect(isApiError(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })
})

it("paths are written as in JavaScript", () => {
  expect(
    [[], ["a"], ["a", 0, "b"], ["a", 0, 1], [0, "b"], ["a", { key: "b" }, { key: 2 }]].map((path) =>
      formatPath(path),
    ),
  ).toEqual(["", "a", "a[0].b", "a[0][1]", "[0].b", "a.b[2]"])
})

it("says `object` where our schemas have a name or a shape", async () => {
  const Named = Schema.Struct({ a: Schema.String }).annotate({ identifier: "SecretName" })
  const schema = Schema.Struct({
    named: Schema.optionalKey(Named),
    shaped: Schema.optionalKey(Schema.Struct({ kind: Schema.Literal("x") })),
  })
  for (const body of [{ named: 5 }, { shaped: "text" }]) {
    const error = await Effect.runPromise(Effect.flip(decodeBody(schema, body)))
    expect(error.message).toBe(`${Object.keys(body)[0]}: expected object`)
  }
})

describe("the query", () => {
  const schema = Schema.Struct({
    ...pageQuery,
    order: wordQuery(["desc", "asc"]),
    all: Schema.optionalKey(Schema.Boolean),
  })
  const read = (query: Record<string, string>) =>
    Effect.runSync(
      Effect.match(decodeQuery(schema, query), {
        onSuccess: (decoded): unknown => decoded,
        onFailure: ({ code, param, message }) => [code, param, message],
      }),
    )

  it.each([
    [{}, { limit: 20, order: "desc" }],
    [
      { limit: "100", after: "5", order: "asc" },
      { limit: 100, after: "5", order: "asc" },
    ],
    [
      { all: "true", unknown: "1" },
      { limit: 20, order: "desc", all: true },
    ],
  ])("%j is %j", (query, decoded) => expect(read(query)).toEqual(decoded))

  it.each([
    [{ limit: "0" }, "limit: must be a whole number from 1 to 100"],
    [{ limit: "x" }, "limit: must be a number"],
    [{ limit: "" }, "limit: must be a number"],
    [{ limit: "1e1" }, "limit: must be a number"],
    [{ order: "up" }, "order: must be one of desc, asc"],
    [{ all: "maybe" }, 'all: expected "true" | "false"'],
  ])("refuses %j", (query, message) =>
    expect(read(query)).toEqual(["invalid_request_error", message.split(":")[0], message]),
  )
})
