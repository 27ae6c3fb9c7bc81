import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Ajv } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import { expect, test } from "vitest"
import type { Json } from "../../../../core/json.ts"
import { keptSchemas } from "../testing/schemas.ts"
import { SchemaDocument } from "./document.ts"
import { acceptsValue } from "./validator/accepts.ts"

const draft6 = (): Ajv => {
  const ajv = new Ajv({ meta: false })
  const path = createRequire(import.meta.url).resolve("ajv/dist/refs/json-schema-draft-06.json")
  ajv.addMetaSchema(JSON.parse(readFileSync(path, "utf8")))
  return ajv
}

const published: Readonly<Record<string, () => Ajv>> = {
  "http://json-schema.org/draft-06/schema#": draft6,
  "http://json-schema.org/draft-07/schema#": () => new Ajv(),
  "https://json-schema.org/draft/2019-09/schema": () => new Ajv2019(),
  "https://json-schema.org/draft/2020-12/schema": () => new Ajv2020(),
}

// without $schema and $vocabulary, whose format the independent validator leaves out, and enum,
// of which its copy of draft 7 asks more than the published one
const keywords = [
  ...["$id", "$anchor", "$ref", "$dynamicRef", "$dynamicAnchor"],
  ...["$recursiveRef", "$recursiveAnchor", "$comment", "$defs", "definitions", "title", "default"],
  ...["description", "examples", "deprecated", "readOnly", "multipleOf", "maximum", "minimum"],
  ...["exclusiveMaximum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "items"],
  ...["additionalItems", "prefixItems", "maxItems", "minItems", "uniqueItems", "contains"],
  ...["maxContains", "minContains", "maxProperties", "minProperties", "required", "properties"],
  ...["patternProperties", "additionalProperties", "propertyNames", "dependencies"],
  ...["dependentRequired", "dependentSchemas", "const", "type", "format", "allOf"],
  ...["anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"],
  ...["contentMediaType", "contentEncoding", "contentSchema", "unknown"],
]
const values: readonly Json[] = [
  ...[null, true, false, 0, 1, -1, 1.5, "", "a#b", "#", "9", "string", "http://a/b", [], [1], [[]]],
  ...[["a"], ["a", "a"], ["string", "null"], [{}], [true, { type: 3 }], {}, { a: 1 }, { a: {} }],
  ...[{ a: ["b"] }, { a: ["b", "b"] }, { a: true }, { type: "number" }, { type: "numbers" }],
  ...[{ a: { minLength: -1 } }, { properties: { a: { items: { not: 3 } } } }],
]

test.each(Object.keys(published))(
  "accepts what the published meta-schema accepts: %s",
  (address) => {
    const validates = published[address]!().getSchema(address)!
    const document = new SchemaDocument({ $ref: address })
    const schemas = [
      ...values,
      ...keptSchemas,
      ...keywords.flatMap((keyword) => values.map((value) => ({ [keyword]: value }))),
    ]
    for (const schema of schemas)
      expect(acceptsValue(document, document.root, schema), JSON.stringify(schema)).toBe(
        validates(schema),
      )
  },
)

test("draft 4 has a meta-schema, too", () => {
  const document = new SchemaDocument({ $ref: "http://json-schema.org/draft-04/schema#" })
  for (const [schema, isValid] of [
    [{ id: "a", minimum: 1, exclusiveMinimum: true, required: ["a"] }, true],
    [{ exclusiveMinimum: true }, false],
    [{ minimum: 1, exclusiveMinimum: 2 }, false],
    [{ required: [] }, false],
    [{ properties: { a: { type: "any" } } }, false],
    [true, false],
  ] as const)
    expect(acceptsValue(document, document.root, schema), JSON.stringify(schema)).toBe(isValid)
})

test("what schemas refer to inside of meta-schemas is there, and their vocabularies are", () => {
  for (const [$ref, valid, invalid] of [
    ["http://json-schema.org/draft-04/schema#/definitions/positiveInteger", 3, -1],
    ["http://json-schema.org/draft-04/schema#/properties/title", "a", 1],
    ["http://json-schema.org/draft-07/schema#/definitions/stringArray", ["a"], ["a", "a"]],
    ["https://json-schema.org/draft/2020-12/meta/applicator", { not: { not: {} } }, { not: 1 }],
    ["https://json-schema.org/draft/2020-12/meta/applicator", { minLength: "" }, { allOf: [] }],
    ["https://json-schema.org/draft/2019-09/meta/validation", { minLength: 1 }, { minLength: -1 }],
  ] as const) {
    const document = new SchemaDocument({ $ref })
    expect(acceptsValue(document, document.root, valid), $ref).toBe(true)
    expect(acceptsValue(document, document.root, invalid), $ref).toBe(false)
  }
})

test("a copy of the published meta-schema, made of vocabularies, refers to itself", () => {
  const address = "https://json-schema.org/draft/2020-12/schema"
  const parts = ["core", "applicator", "validation"]
  const copy = {
    $schema: address,
    $id: address,
    $dynamicAnchor: "meta",
    allOf: parts.map((part) => ({ $ref: `meta/${part}` })),
    type: ["object", "boolean"],
  }
  const document = new SchemaDocument(copy)
  const accepts = (value: Json) => acceptsValue(document, document.root, value)
  expect(accepts({ properties: { a: { items: { minLength: 1 } } } })).toBe(true)
  expect(accepts({ properties: { a: { items: { minLength: -1 } } } })).toBe(false)
})
