import type { Json } from "../../../../core/json.ts"

const object = (
  properties: Readonly<Record<string, Json>>,
  required = Object.keys(properties),
  more: Readonly<Record<string, Json>> = { additionalProperties: false },
): Json => ({
  type: "object",
  properties,
  required,
  ...more,
})
const person = object({
  name: { type: "string", minLength: 1, maxLength: 20 },
  age: { type: "integer", minimum: 0, maximum: 130 },
})

/** Schemas that are enforced: each keyword, and combinations known to be difficult. */
export const keptSchemas: readonly Json[] = [
  {},
  true,
  { type: "object" },
  person,
  object(
    {
      a: { type: "boolean" },
      b: { type: "null" },
      c: { type: "number" },
      d: { type: ["integer", "string"] },
    },
    ["b"],
  ),
  object({ a: { type: "integer" } }, ["a"], { additionalProperties: { type: "string" } }),
  object({ a: { type: "integer" } }, [], {}),
  object({ 'we"ird\\key': { type: "integer" }, "ключ\n": { type: "string" } }),
  { type: "integer" },
  { type: "integer", minimum: -17, maximum: 1203 },
  { type: "integer", exclusiveMinimum: -1, exclusiveMaximum: 2 },
  {
    type: "integer",
    minimum: 5,
    exclusiveMinimum: true,
    maximum: 8,
    exclusiveMaximum: true,
    $schema: "http://json-schema.org/draft-07/schema#",
    $comment: "booleans are draft 4",
  },
  { type: "integer", multipleOf: 7, minimum: -100 },
  { type: "integer", minimum: 0, maximum: 2 ** 63 },
  { type: "number" },
  { type: "number", minimum: -1.5, maximum: 0.25 },
  { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
  { type: "number", exclusiveMinimum: -0.1, maximum: 0 },
  { type: "number", exclusiveMaximum: -2 },
  { type: "number", minimum: 99.5, exclusiveMaximum: 100.01 },
  { type: "number", multipleOf: 0.25, maximum: 3 },
  { type: "number", multipleOf: 10 },
  { type: "integer", format: "int32" },
  { minimum: 3, minLength: 2 },
  { type: "string", minLength: 2, maxLength: 5 },
  { type: "string", pattern: "^[a-z]{2,4}(-[A-Z]+)*$" },
  { type: "string", pattern: "\\d\\.\\w" },
  { type: "string", pattern: "^(?:a.c|\\s\\S|[^x-z]\\D)$" },
  { type: "string", pattern: "^a|b$", maxLength: 6 },
  { type: "string", pattern: "^\\p{Lu}\\p{Ll}+$", maxLength: 9 },
  { type: "string", pattern: "^[^\\d\\s]{3}$", minLength: 3 },
  { type: "string", pattern: "^(foo|ba[rz]{1,2})?$", maxLength: 3 },
  { enum: ["red", 'a"b', "é\n", 1, 2.5, null, true, [1, "x"], { k: [] }] },
  { enum: [1, 2, 3, "4", 5.5], type: "integer", not: { const: 2 } },
  { const: { b: 1, a: [null] } },
  { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, minItems: 2, maxItems: 4 },
  {
    type: "array",
    prefixItems: [{ type: "string", maxLength: 3 }, { type: "boolean" }],
    items: false,
    minItems: 1,
  },
  { type: "array", prefixItems: [{ const: 1 }], items: { type: "null" }, maxItems: 3 },
  {
    type: "array",
    items: [{ const: 1 }, { const: 2 }],
    additionalItems: { const: 3 },
    maxItems: 5,
    $schema: "http://json-schema.org/draft-07/schema#",
  },
  { type: "array", uniqueItems: true, maxItems: 1 },
  {
    type: "object",
    patternProperties: { "^x_[a-z]+$": { type: "integer" }, "^y\\d$": { type: "boolean" } },
    additionalProperties: false,
  },
  {
    type: "object",
    properties: { x_a: { maximum: 5 } },
    patternProperties: { "^x_": { type: "integer" } },
    additionalProperties: { type: "null" },
  },
  { type: "object", minProperties: 1, properties: { a: { type: "null" }, b: { type: "null" } } },
  {
    type: "object",
    minProperties: 1,
    properties: { a: { type: "null" }, b: { type: "null" } },
    additionalProperties: false,
  },
  {
    type: "object",
    minProperties: 2,
    properties: { a: { type: "null" }, b: { type: "null" } },
    additionalProperties: false,
  },
  { type: "object", maxProperties: 2, additionalProperties: { type: "integer" } },
  { type: "object", maxProperties: 1, required: ["a"], properties: { a: true, b: true } },
  {
    type: "object",
    propertyNames: { pattern: "^[a-c]{1,3}$" },
    additionalProperties: { type: "integer" },
  },
  {
    type: "object",
    propertyNames: { enum: ["a", "b"] },
    properties: { a: { type: "null" }, z: true },
  },
  {
    type: "object",
    properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } },
    dependentRequired: { a: ["b"] },
    additionalProperties: false,
  },
  {
    type: "object",
    properties: { a: { type: "null" } },
    dependencies: { a: { properties: { b: { const: 1 } }, required: ["b"] } },
  },
  { type: "object", required: ["z"], additionalProperties: { type: "integer" } },
  { type: "object", properties: { a: { type: "null" } }, unevaluatedProperties: false },
  { $defs: { p: person }, type: "array", items: { $ref: "#/$defs/p" }, minItems: 1, maxItems: 2 },
  {
    definitions: { "a/b~c": { type: "boolean" } },
    type: "array",
    items: { $ref: "#/definitions/a~1b~0c" },
    maxItems: 2,
  },
  {
    $defs: {
      n: object({
        v: { type: "integer" },
        kids: { type: "array", items: { $ref: "#/$defs/n" }, maxItems: 2 },
      }),
    },
    $ref: "#/$defs/n",
  },
  {
    $id: "https://example.com/tree",
    $defs: { leaf: { $anchor: "leaf", type: "boolean" } },
    anyOf: [{ $ref: "#leaf" }, { type: "array", items: { $ref: "tree" }, maxItems: 2 }],
  },
  {
    anyOf: [{ type: "string", maxLength: 3 }, { type: "integer" }, { $ref: "#/$defs/never" }],
    $defs: { never: { type: "array", items: { $ref: "#/$defs/never" }, minItems: 1 } },
  },
  {
    allOf: [
      object({ a: { type: "integer" } }, ["a"], {}),
      object({ b: { type: "string", maxLength: 4 } }, ["b"], {}),
    ],
    properties: { a: { minimum: 5 } },
  },
  { allOf: [{ enum: [1, 2, 3, 6] }, { multipleOf: 3 }] },
  {
    oneOf: [
      object({ t: { const: "a" }, x: { type: "integer" } }),
      object({ t: { const: "b" }, y: { type: "string", maxLength: 5 } }),
    ],
  },
  {
    type: "object",
    properties: { a: { type: "null" }, b: { type: "null" } },
    oneOf: [{ required: ["a"] }, { required: ["b"] }],
  },
  {
    oneOf: [
      { type: "string", maxLength: 3 },
      { type: "string", minLength: 5, maxLength: 8 },
      { type: "number", maximum: 0 },
    ],
  },
  { not: { type: ["object", "array", "string"] } },
  { type: "object", not: { required: ["a"] }, additionalProperties: { type: "null" } },
  ...[
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "json-pointer",
    "relative-json-pointer",
    "byte",
  ].map((format) => ({
    type: "string",
    format,
  })),
  { type: "string", format: "date", pattern: "^20", maxLength: 10 },
]

const set = (items: Json, more: Readonly<Record<string, Json>> = {}): Json => ({
  type: "array",
  items,
  uniqueItems: true,
  ...more,
})

/** Schemas of which a part is checked on finished values. */
export const guardedSchemas: readonly Json[] = [
  set({ enum: ["red", "rose", "green", "\u00e9", 'q"'] }, { minItems: 3 }),
  set({ type: "integer", minimum: -3, maximum: 12 }, { minItems: 2 }),
  set({ type: "string", maxLength: 3 }, { maxItems: 5 }),
  set(object({ id: { type: "integer", minimum: 0, maximum: 99 }, of: set({ type: "boolean" }) })),
  object({ tags: set({ type: "string", maxLength: 5 }), done: { type: "boolean" } }),
  {
    type: "array",
    items: { type: "integer", minimum: 0, maximum: 20 },
    contains: { minimum: 15 },
    maxContains: 2,
    maxItems: 9,
  },
  {
    type: "object",
    properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } },
    additionalProperties: { type: "integer" },
    minProperties: 2,
    maxProperties: 4,
  },
  {
    type: "object",
    patternProperties: { "^x": { type: "integer" }, a$: { minimum: 3 } },
    additionalProperties: false,
    maxProperties: 4,
  },
  {
    type: "object",
    propertyNames: { pattern: "^[a-z]{2,4}$", not: { const: "aa" } },
    additionalProperties: { type: "boolean" },
    maxProperties: 3,
  },
  {
    $defs: {
      named: { properties: { name: { type: "string", maxLength: 4 } }, required: ["name"] },
    },
    type: "object",
    $ref: "#/$defs/named",
    properties: { n: { type: "integer" } },
    unevaluatedProperties: false,
  },
  {
    type: "object",
    properties: { kind: { enum: ["a", "b"] } },
    required: ["kind"],
    anyOf: [
      { properties: { kind: { const: "a" }, x: { type: "integer" } } },
      { properties: { kind: { const: "b" }, y: { type: "boolean" } } },
    ],
    unevaluatedProperties: false,
  },
  {
    anyOf: [
      set({ type: "integer", minimum: 1, maximum: 40 }, { minItems: 2 }),
      { type: "string", maxLength: 4 },
    ],
  },
]
