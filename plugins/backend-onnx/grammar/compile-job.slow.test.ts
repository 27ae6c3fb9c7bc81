import { Effect } from "effect"
import { expect, test } from "vitest"
import { PortError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { fakeLog, fakeWorkers } from "../../../testing/index.ts"
import { grammarOfSchema } from "./compile-in-pool.ts"
import compileJob from "./compile-job.ts"
import { makeOpenVocabularies, makeSchemaChecker } from "./schema-checker.ts"
import { relax } from "./schema-report.ts"

const strict = (schema: Json) => compileJob({ kind: "schema", schema, isStrict: true })
const loose = (schema: Json) => compileJob({ kind: "schema", schema, isStrict: false })
const check = (schema: Json, workers: Workers = fakeWorkers()) =>
  makeSchemaChecker(() => ({ workers, log: fakeLog() }), makeOpenVocabularies()).check(schema)
const param = "response_format.json_schema.schema"
const plan = (schema: Json, isStrict = true) =>
  Effect.runPromise(
    Effect.flip(grammarOfSchema(fakeWorkers(), fakeLog(), { schema, isStrict, param })),
  )

const elsewhere = {
  type: "object",
  properties: { "a/b": { type: "array", items: { $ref: "https://example.com/b", maximum: 3 } } },
}

test("a schema that is kept compiles, and its grammar is the schema itself", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } }
  expect(strict(schema)).toMatchObject({ result: "ok", grammar: { kind: "schema", schema } })
})

test("the same schema is compiled once", () => {
  const schema = { type: "string", minLength: 3, $comment: "once" }
  expect(strict(schema)).toBe(strict(structuredClone(schema)))
})

test("what can't be kept is refused by its name and place", async () => {
  expect(strict(elsewhere)).toMatchObject({
    result: "refused",
    keyword: "$ref",
    path: "/properties/a~1b/items/$ref",
  })
  expect(await plan(elsewhere)).toMatchObject({
    code: "unsupported_parameter",
    param,
    message: expect.stringMatching(/"\$ref" at \/properties\/a~1b\/items\/\$ref/),
  })
})

test("what is not strict is guided by the rest", () => {
  const rest = {
    type: "object",
    properties: { "a/b": { type: "array", items: { maximum: 3 } } },
  }
  expect(relax(elsewhere)).toEqual(rest)
  expect(loose(elsewhere)).toMatchObject({ result: "ok", grammar: { schema: rest } })
  expect(relax({ oneOf: [{ type: "integer" }, { $ref: "elsewhere", minimum: 3 }] })).toEqual({
    anyOf: [{ type: "integer" }, { minimum: 3 }],
  })
})

test("what no document satisfies is refused, strict or not", async () => {
  for (const schema of [
    false,
    { $ref: "#" },
    { type: "integer", minimum: 3, maximum: 2 },
    { type: "object", required: ["a"], properties: { a: false } },
    { type: "string", pattern: "^a{3}$", maxLength: 2 },
  ]) {
    expect(strict(schema), JSON.stringify(schema)).toMatchObject({
      result: "refused",
      reason: "no document satisfies the schema",
    })
  }
  expect(await plan({ $ref: "#" }, false)).toMatchObject({ code: "invalid_request_error", param })
})

test("what is no JSON Schema is 400 and says where", async () => {
  for (const [schema, path] of [
    [3, ""],
    [{ type: "text" }, "/type"],
    [{ properties: { a: [] } }, "/properties/a"],
    [{ minimum: "3" }, "/minimum"],
    [{ anyOf: [] }, "/anyOf"],
    [{ type: "array", minItems: -1 }, "/minItems"],
  ] as const) {
    expect(strict(schema), JSON.stringify(schema)).toMatchObject({ result: "invalid", path })
  }
  expect(await Effect.runPromise(Effect.flip(check({ type: "text" })))).toMatchObject({
    code: "invalid_request_error",
    param: "schema",
  })
})

test("a name of half a surrogate pair is no JSON text, wherever it stands", () => {
  for (const [schema, path] of [
    [{ type: "object", properties: { "\ud800": {} } }, "/properties"],
    [{ items: { type: "object", required: ["a", "\udc00b"] } }, "/items/required"],
    [{ dependentRequired: { "\udbff": ["a"] } }, "/dependentRequired"],
  ] as const)
    expect(strict(schema), path).toMatchObject({ result: "invalid", path })
  expect(strict({ properties: { "\ud83d\ude00": {} } })).toMatchObject({ result: "ok" })
})

test("what can't be kept is said once", async () => {
  const { message } = await plan({ type: "string", pattern: "(word)\\1" })
  expect(message).toMatch(/"pattern" at \/pattern can't be kept: a reference to a group/)
  expect(message.match(/can't be kept/g)).toHaveLength(1)
})

/** References that double `times` times. */
const doubled = (times: number) => ({
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries([
    [`d${times}`, { type: "integer" }],
    ...Array.from({ length: times }, (_, i) => {
      const next = { $ref: `#/$defs/d${i + 1}` }
      return [`d${i}`, { type: "object", properties: { a: next, b: next }, required: ["a", "b"] }]
    }),
  ]),
})

test("a schema whose smallest document nobody could wait for is refused by name", () => {
  for (const [schema, keyword, path] of [
    [{ type: "array", minItems: 1_000_000_000 }, "minItems", "/minItems"],
    [{ anyOf: [{ type: "array", minItems: 1e300 }] }, "minItems", "/anyOf/0/minItems"],
    [
      { properties: { a: { type: "array", minItems: 1e6 } }, type: "object", required: ["a"] },
      "minItems",
      "/properties/a/minItems",
    ],
    [doubled(40), "required", "/$defs/d23/required"],
    [doubled(2_000), "required", "/$defs/d1983/required"],
  ] as const)
    expect(strict(schema), path).toMatchObject({ result: "refused", keyword, path })
  for (const schema of [
    doubled(5),
    { type: "array", minItems: 1_000 },
    { anyOf: [{ type: "array", minItems: 1e9 }, { type: "null" }] },
    { type: "object", properties: { a: { type: "array", minItems: 1e9 } } },
    { anyOf: [{ type: "array", items: { $ref: "#" }, minItems: 2 }, { type: "null" }] },
  ])
    expect(strict(schema), JSON.stringify(schema)).toMatchObject({ result: "ok" })
})

test("time and memory are bounded: what is too much is refused with a text", () => {
  const deep = Array.from({ length: 500 }).reduce<Json>(
    (inner) => ({ type: "array", items: inner }),
    {},
  )
  expect(strict(deep)).toMatchObject({ result: "invalid", reason: expect.stringMatching(/deeper/) })
  const wide = {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`p${i}`, {}])),
  }
  expect(strict(wide)).toMatchObject({
    result: "invalid",
    reason: expect.stringMatching(/more than/),
  })
  const product = {
    allOf: Array.from({ length: 12 }, (_, i) => ({
      anyOf: Array.from({ length: 8 }, (_, j) => ({
        type: "object",
        properties: { [`k${i}`]: { const: j } },
      })),
    })),
  }
  const chain = (count: number, link: (next: Json) => Json) => ({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      Array.from({ length: count }, (_, i) => [
        `d${i}`,
        i === count - 1 ? { type: "string" } : link({ $ref: `#/$defs/d${i + 1}` }),
      ]),
    ),
  })
  for (const deepOrWide of [
    chain(2_000, (next) => ({ oneOf: [next, { type: "null" }] })),
    chain(2_000, (next) => ({ not: next })),
    chain(6, (next) => ({ oneOf: Array.from({ length: 50 }, () => next) })),
  ])
    expect(strict(deepOrWide)).toMatchObject({ result: "ok" })
  // what can't be merged is checked on finished values
  expect(strict(product)).toMatchObject({ result: "ok", grammar: { schema: product } })
  const schema = { enum: Array.from({ length: 2_000 }, (_, a) => ({ a })) }
  expect(strict(schema)).toMatchObject({ result: "tooComplex" })
  expect(loose(schema)).toMatchObject({ result: "ok", grammar: { schema: {} } })
})

test("a schema that is too large is refused before it is compiled", async () => {
  expect(await plan({ description: "x".repeat(600_000) })).toMatchObject({
    code: "invalid_request_error",
    param,
    message: expect.stringMatching(/bytes/),
  })
})

test("a grammar in Lark that does not compile says why", () => {
  expect(compileJob({ kind: "lark", lark: 'start: "a"' })).toMatchObject({ result: "ok" })
  expect(compileJob({ kind: "lark", lark: "start: missing" })).toMatchObject({
    reason: expect.stringMatching(/missing/),
  })
})

test("the report speaks of every keyword", async () => {
  const report = await Effect.runPromise(check({ ...elsewhere, title: "t", minProperties: 0 }))
  expect(report).toMatchObject({ accepted: false, error: expect.stringMatching(/\$ref/) })
  expect(report.compileMs).toBeGreaterThan(0)
  expect(Object.fromEntries(report.keywords.map(({ path, verdict }) => [path, verdict]))).toEqual({
    "/title": "annotation",
    "/type": "enforced",
    "/properties": "enforced",
    "/minProperties": "enforced",
    "/properties/a~1b/type": "enforced",
    "/properties/a~1b/items": "enforced",
    "/properties/a~1b/items/maximum": "enforced",
    "/properties/a~1b/items/$ref": "refused",
  })
  expect(await Effect.runPromise(check({ type: "boolean" }))).toMatchObject({ accepted: true })
})

test("a pool that is full is server_busy, and one that fails backend_error", async () => {
  const failing = (why?: "busy"): Workers => ({
    run: () => Effect.fail(new PortError({ port: "workers", message: "no", ...(why && { why }) })),
  })
  expect(await Effect.runPromise(Effect.flip(check({}, failing("busy"))))).toMatchObject({
    code: "server_busy",
  })
  expect(await Effect.runPromise(Effect.flip(check({}, failing())))).toMatchObject({
    code: "backend_error",
  })
})
