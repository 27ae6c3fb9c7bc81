import { Schema } from "effect"
import { expect, it } from "vitest"
import { optional } from "../../../core/decode.ts"
import { makeSchemaBook } from "./schemas.ts"

const definitionsOf = (schema: Schema.Top): Readonly<Record<string, unknown>> => {
  const book = makeSchemaBook([schema])
  return { at: book.of(schema, "ThingsReply"), ...book.definitions() }
}
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

it("objects inside of objects are components, named by where they stand", () => {
  const schema = Schema.Struct({
    choices: Schema.Array(Schema.Struct({ index: Schema.Int })),
    tool_choice: optional(Schema.Struct({ name: Schema.String })),
    by_name: Schema.Record(Schema.String, Schema.Struct({ x: Schema.Boolean })),
  }).annotate({ identifier: "Thing" })
  expect(definitionsOf(schema)).toMatchObject({
    at: ref("Thing"),
    Thing: {
      properties: {
        choices: { type: "array", items: ref("ThingChoice") },
        tool_choice: { anyOf: [ref("ThingToolChoice"), { type: "null" }] },
        by_name: { additionalProperties: ref("ThingByNameValue") },
      },
    },
    ThingChoice: { properties: { index: { type: "integer" } }, required: ["index"] },
    ThingToolChoice: { properties: { name: { type: "string" } } },
  })
})

it("a schema without an identifier is named by its operation", () => {
  expect(definitionsOf(Schema.Struct({ a: Schema.String }))).toMatchObject({
    at: ref("ThingsReply"),
    ThingsReply: { properties: { a: { type: "string" } } },
  })
})

it("alternatives that one property tells apart have a discriminator", () => {
  const schema = Schema.Union([
    Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("image_url"), url: Schema.String }),
  ]).annotate({ identifier: "Part" })
  expect(definitionsOf(schema).Part).toEqual({
    oneOf: [ref("PartText"), ref("PartImageUrl")],
    discriminator: {
      propertyName: "type",
      mapping: { text: ref("PartText").$ref, image_url: ref("PartImageUrl").$ref },
    },
  })
})

it("alternatives that none tells apart have names of their own, and no discriminator", () => {
  const type = Schema.Literal("image")
  const schema = Schema.Union([
    Schema.Struct({ type, image: Schema.String }),
    Schema.Struct({ type, image_url: Schema.String }),
    Schema.String,
  ]).annotate({ identifier: "Image" })
  expect(definitionsOf(schema).Image).toEqual({
    anyOf: [ref("ImageImage"), ref("ImageImage2"), { type: "string" }],
  })
})

it("a default is said in words: generators would make the field required", () => {
  const schema = Schema.Struct({
    n: optional(Schema.Int).annotate({ default: 1, description: "How many." }),
  }).annotate({ identifier: "Thing" })
  expect(definitionsOf(schema).Thing).toMatchObject({
    properties: { n: { description: "How many. Default: 1." } },
  })
  expect(JSON.stringify(definitionsOf(schema))).not.toContain('"default"')
})

it("an object of any fields says so, one with fields leaves it out", () => {
  const schema = Schema.Struct({ any: Schema.Record(Schema.String, Schema.Unknown) }).annotate({
    identifier: "Thing",
  })
  const { Thing } = definitionsOf(schema)
  expect(Thing).toMatchObject({ properties: { any: { additionalProperties: true } } })
  expect(Thing).not.toHaveProperty("additionalProperties")
})

it("arrays of different items become one of any of them", () => {
  const schema = Schema.Struct({
    input: Schema.Union([
      Schema.String,
      Schema.Array(Schema.Int),
      Schema.Array(Schema.Union([Schema.String, Schema.Boolean])),
    ]),
  }).annotate({ identifier: "Thing" })
  expect(definitionsOf(schema).Thing).toMatchObject({
    properties: {
      input: {
        anyOf: [
          { type: "string" },
          {
            type: "array",
            items: { anyOf: [{ type: "integer" }, { type: "string" }, { type: "boolean" }] },
          },
        ],
      },
    },
  })
})

it("a field that may only be null is left out, unless it is always there", () => {
  const schema = Schema.Struct({
    refused: optional(Schema.Null),
    first_id: Schema.Null,
  }).annotate({ identifier: "Thing" })
  const { Thing } = definitionsOf(schema)
  expect(Thing).toMatchObject({ properties: { first_id: { type: "null" } } })
  expect(Thing).not.toHaveProperty("properties.refused")
})
