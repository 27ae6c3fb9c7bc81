import { expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import { GrammarInstance } from "./grammar-instance.ts"
import { byteVocabulary } from "./grammar-vocabulary.ts"
import { SchemaDocument } from "./schema/document.ts"
import { acceptsValue } from "./schema/validator/accepts.ts"
import { tooManyWays } from "./schema/ways.ts"
import { analyseSchema } from "./schema-report.ts"
import { fewDocuments, randomSchemas } from "./testing/combined-schemas.ts"
import { independentValidator } from "./testing/validator.ts"
import { randomFrom } from "./testing/walk.ts"

const schemas = Number(process.env.SCHEMAS ?? 150)
const instance = new GrammarInstance(byteVocabulary())

/** The texts of a document, with its properties in every order. */
const textsOf = (value: Json): readonly string[] => {
  if (typeof value !== "object" || value === null) return [JSON.stringify(value)]
  if (Array.isArray(value))
    return value
      .map(textsOf)
      .reduce((heads, texts) => heads.flatMap((head) => texts.map((text) => [...head, text])), [
        [] as readonly string[],
      ] as readonly (readonly string[])[])
      .map((items) => `[${items.join(",")}]`)
  const orders = (rest: readonly string[]): readonly (readonly string[])[] =>
    rest.length === 0
      ? [[]]
      : rest.flatMap((name) =>
          orders(rest.filter((other) => other !== name)).flatMap((tail) =>
            textsOf((value as Record<string, Json>)[name]).map((text) => [
              `${JSON.stringify(name)}:${text}`,
              ...tail,
            ]),
          ),
        )
  return orders(Object.keys(value)).map((parts) => `{${parts.join(",")}}`)
}

const tagged = (value: Json, [consequence]: readonly ["then"], then: Json): Json => ({
  if: { properties: { kind: { const: value } }, required: ["kind"] },
  [consequence]: then,
})
const kinds = { type: "object", properties: { kind: { enum: ["a", "b", "c"] }, n: {} } }

test("what people write most is left to masks alone", () => {
  for (const schema of [
    { ...kinds, required: ["kind"], ...(tagged("a", ["then"], { required: ["n"] }) as object) },
    {
      ...kinds,
      allOf: ["a", "b", "c"].map((kind) => tagged(kind, ["then"], { required: [`x${kind}`] })),
    },
    {
      type: "object",
      properties: { version: { type: "integer" } },
      allOf: Array.from({ length: 30 }, (_, i) => ({
        if: { properties: { version: { const: i } } },
        else: { required: ["name"] },
      })).slice(0, 3),
    },
    { type: "object", oneOf: [{ required: ["a", "b"] }, { required: ["b", "c"] }] },
    {
      oneOf: [
        { type: "object", required: ["a"] },
        { type: "object", required: ["b"] },
      ],
    },
    {
      oneOf: ["a", "b"].map((name) => ({
        type: "object",
        properties: { [name]: { type: "string" } },
        additionalProperties: false,
      })),
    },
    {
      oneOf: [
        { type: "string", format: "ipv4" },
        { type: "string", format: "ipv6" },
      ],
    },
    {
      oneOf: [
        { type: "string", pattern: "^a" },
        { type: "string", minLength: 3 },
      ],
    },
    {
      oneOf: [
        { type: "integer", minimum: 3 },
        { type: "integer", maximum: 7 },
      ],
    },
    { type: "string", not: { enum: ["", "none", "null"] } },
    { not: { anyOf: [{ type: "null" }, { required: ["a", "b"] }, { maximum: 3 }] } },
    { type: "array", maxItems: 3, not: { items: { type: "null" } } },
    {
      not: { $ref: "#/$defs/list" },
      $defs: { list: { properties: { a: { $ref: "#/$defs/list" } } } },
    },
  ] as readonly Json[]) {
    const { guards, refused } = analyseSchema(schema)
    expect(refused, JSON.stringify(schema)).toBeUndefined()
    expect(guards && [...guards.keywords.keys()], JSON.stringify(schema)).toBeUndefined()
  }
})

test("what masks can't say is guarded, and keeps what they can", () => {
  for (const [schema, kept] of [
    [{ type: "array", not: { items: { type: "null" } } }, /"minItems":1/],
    [{ type: "array", not: { uniqueItems: true } }, /"minItems":2/],
    [{ oneOf: [{ type: "integer" }, { type: "number" }] }, /"type":"number"/],
    [{ type: "object", not: { patternProperties: { "^x": { type: "null" } } } }, /"type":"object"/],
  ] as const) {
    const { guards, enforced } = analyseSchema(schema)
    expect([...guards!.keywords.keys()], JSON.stringify(schema)).toEqual([""])
    expect(JSON.stringify(enforced)).toMatch(kept)
  }
})

test("conditions of one property are cases, and do not multiply", () => {
  const many = Array.from({ length: 60 }, (_, i) => `v${i}`)
  const schema = {
    type: "object",
    properties: { kind: { type: "string" } },
    required: ["kind"],
    allOf: many.map((kind) => tagged(kind, ["then"], { required: [`x${kind}`] })),
  }
  const { guards, enforced } = analyseSchema(schema)
  expect(guards).toBeUndefined()
  expect(tooManyWays(enforced!)).toBeUndefined()
  const matcher = instance.compile("schema", JSON.stringify(enforced))
  expect(writes(matcher, '{"kind":"v7","xv7":1}')).toBe(true)
  expect(writes(matcher, '{"kind":"v7","xv8":1}')).toBe(false)
  expect(writes(matcher, '{"kind":"v","xv8":1}')).toBe(true)
  instance.free(matcher)
})

test("a schema whose alternatives are too many is read again, with more left to guards", () => {
  const some = (name: string) => ({ oneOf: [{ required: [name] }, { required: [`${name}2`] }] })
  const schema = { type: "object", allOf: Array.from({ length: 12 }, (_, i) => some(`p${i}`)) }
  const { guards, enforced } = analyseSchema(schema)
  expect(guards).toBeDefined()
  expect(tooManyWays(enforced!)).toBeUndefined()
})

const writes = (matcher: number, text: string): boolean => {
  const clone = instance.clone(matcher)
  const written =
    Buffer.from(text).every((byte) => instance.consume(clone, byte)) && instance.isAccepting(clone)
  instance.free(clone)
  return written
}

/** Compares all documents; returns whether masks alone decide. */
const compare = (schema: Json): boolean | undefined => {
  const { enforced, guards, refused } = analyseSchema(schema)
  if (refused || (enforced && tooManyWays(enforced))) return undefined
  const validates = independentValidator(schema)
  const document = new SchemaDocument(schema)
  let matcher: number | undefined
  try {
    matcher = enforced && instance.compile("schema", JSON.stringify(enforced))
  } catch (cause) {
    expect(String(cause), JSON.stringify(schema)).toMatch(/Unsatisfiable/)
  }
  for (const value of fewDocuments) {
    const accepted =
      matcher !== undefined &&
      textsOf(value).some((text) => writes(matcher, text)) &&
      (!guards || acceptsValue(document, document.root, value))
    expect(accepted, `${JSON.stringify(schema)}: ${JSON.stringify(value)}`).toBe(validates(value))
  }
  if (matcher !== undefined) instance.free(matcher)
  return guards === undefined
}

test("what is written and passes the guards is what is valid", () => {
  const next = randomSchemas(randomFrom(Number(process.env.SEED ?? 7)))
  const found = Array.from({ length: schemas }, () => compare(next()))
  expect(found.filter((isStatic) => isStatic).length).toBeGreaterThan(schemas / 3)
})

test("a branch that allows other properties is not taken for a closed one", () => {
  const a = { type: "object", properties: { a: { type: "integer" } } }
  for (const schema of [
    {
      oneOf: [
        { ...a, additionalProperties: { type: "integer" } },
        { ...a, additionalProperties: false },
      ],
    },
    { ...a, additionalProperties: { type: "integer" }, not: { additionalProperties: false } },
    { ...a, additionalProperties: false, not: { additionalProperties: { type: "string" } } },
    {
      ...a,
      patternProperties: { "^b": {} },
      additionalProperties: false,
      not: { required: ["b"] },
    },
  ])
    compare(schema)
})
