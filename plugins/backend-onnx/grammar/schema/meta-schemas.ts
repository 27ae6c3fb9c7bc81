import type { Json } from "../../../../core/json.ts"

type Schemas = Readonly<Record<string, Json>>

const text = { type: "string" }
const number = { type: "number" }
const flag = { type: "boolean" }
const address = { type: "string", format: "uri-reference" }
const count = { type: "integer", minimum: 0 }
const names = { type: "array", items: text, uniqueItems: true }
const types = {
  enum: ["array", "boolean", "integer", "null", "number", "object", "string"],
}
const counts: Schemas = Object.fromEntries(
  ["Length", "Items", "Properties"].flatMap((what) => [
    [`max${what}`, count],
    [`min${what}`, count],
  ]),
)

const mapOf = (schema: Json, more: Schemas = {}): Json => ({
  type: "object",
  additionalProperties: schema,
  ...more,
})

/** The definitions of drafts 4 to 7, to which other schemas refer. */
const definitionsOf = (self: Json, more: Schemas): Json => ({
  schemaArray: { type: "array", minItems: 1, items: self },
  simpleTypes: types,
  ...more,
})

/** What all drafts have in common. `self` refers to the meta-schema itself. */
const common = (self: Json): Schemas => {
  const list = { type: "array", minItems: 1, items: self }
  return {
    ...counts,
    $schema: { type: "string", format: "uri" },
    title: text,
    description: text,
    default: true,
    minimum: number,
    maximum: number,
    pattern: { type: "string", format: "regex" },
    items: { anyOf: [self, list] },
    additionalItems: self,
    uniqueItems: flag,
    required: names,
    additionalProperties: self,
    definitions: mapOf(self),
    properties: mapOf(self),
    patternProperties: mapOf(self),
    dependencies: mapOf({ anyOf: [self, names] }),
    enum: { type: "array", minItems: 1, uniqueItems: true },
    type: { anyOf: [types, { type: "array", items: types, minItems: 1, uniqueItems: true }] },
    format: text,
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: self,
  }
}

const draft4 = (): Json => {
  const self = { $ref: "#" }
  const someNames = { ...names, minItems: 1 }
  return {
    id: "http://json-schema.org/draft-04/schema#",
    $schema: "http://json-schema.org/draft-04/schema#",
    type: "object",
    properties: {
      ...common(self),
      id: text,
      $schema: text,
      multipleOf: { type: "number", minimum: 0, exclusiveMinimum: true },
      exclusiveMinimum: flag,
      exclusiveMaximum: flag,
      additionalItems: { anyOf: [flag, self] },
      additionalProperties: { anyOf: [flag, self] },
      required: someNames,
      dependencies: mapOf({ anyOf: [self, someNames] }),
    },
    dependencies: { exclusiveMaximum: ["maximum"], exclusiveMinimum: ["minimum"] },
    definitions: definitionsOf(self, {
      positiveInteger: count,
      positiveIntegerDefault0: count,
      stringArray: someNames,
    }),
  }
}

/** What draft 6 added, and is there since. */
const since6 = (self: Json): Schemas => ({
  ...common(self),
  $id: address,
  $ref: address,
  examples: { type: "array" },
  multipleOf: { type: "number", exclusiveMinimum: 0 },
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  contains: self,
  propertyNames: self,
  const: true,
})

const since7 = (self: Json): Schemas => ({
  ...since6(self),
  $comment: text,
  readOnly: flag,
  writeOnly: flag,
  contentMediaType: text,
  contentEncoding: text,
  patternProperties: mapOf(self, { propertyNames: { format: "regex" } }),
  enum: { type: "array" },
  if: self,
  // biome-ignore lint/suspicious/noThenProperty: a keyword
  then: self,
  else: self,
})

const since2019 = (self: Json): Schemas => ({
  ...since7(self),
  $id: { ...address, pattern: "^[^#]*#?$" },
  $vocabulary: mapOf(flag, { propertyNames: { type: "string", format: "uri" } }),
  $recursiveRef: address,
  $defs: mapOf(self),
  deprecated: flag,
  contentSchema: self,
  unevaluatedItems: self,
  unevaluatedProperties: self,
  dependentSchemas: mapOf(self),
  dependentRequired: mapOf(names),
  maxContains: count,
  minContains: count,
})

const plain = (draft: string, properties: (self: Json) => Schemas): Json => ({
  $id: `http://json-schema.org/${draft}/schema#`,
  $schema: `http://json-schema.org/${draft}/schema#`,
  type: ["object", "boolean"],
  properties: properties({ $ref: "#" }),
  definitions: definitionsOf(
    { $ref: "#" },
    { nonNegativeInteger: count, nonNegativeIntegerDefault0: count, stringArray: names },
  ),
})

const vocabularies: Readonly<Record<string, readonly string[]>> = {
  core: [
    ...["$id", "$schema", "$anchor", "$ref", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"],
    ...["$recursiveAnchor", "$vocabulary", "$comment", "$defs"],
  ],
  applicator: [
    ...["prefixItems", "items", "additionalItems", "contains", "additionalProperties"],
    ...["properties", "patternProperties", "dependentSchemas", "propertyNames"],
    ...["if", "then", "else", "allOf", "anyOf", "oneOf", "not"],
  ],
  unevaluated: ["unevaluatedItems", "unevaluatedProperties"],
  validation: [
    ...["type", "const", "enum", "multipleOf", "maximum", "exclusiveMaximum", "minimum"],
    ...["exclusiveMinimum", "pattern", "required", "uniqueItems", "maxContains", "minContains"],
    ...[...Object.keys(counts), "dependentRequired"],
  ],
  "meta-data": [
    ...["title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples"],
  ],
  format: ["format"],
  "format-annotation": ["format"],
  content: ["contentEncoding", "contentMediaType", "contentSchema"],
}

const draft2019 = (): Schemas => ({
  ...since2019({ $recursiveRef: "#" }),
  $anchor: { type: "string", pattern: "^[A-Za-z][-A-Za-z0-9.:_]*$" },
  $recursiveAnchor: flag,
})

const draft2020 = (): Schemas => {
  const self = { $dynamicRef: "#meta" }
  const anchor = { type: "string", pattern: "^[A-Za-z_][-A-Za-z0-9._]*$" }
  const { additionalItems: _, ...rest } = since2019(self)
  return {
    ...rest,
    items: self,
    prefixItems: { type: "array", minItems: 1, items: self },
    $anchor: anchor,
    $dynamicAnchor: anchor,
    $dynamicRef: address,
    $recursiveAnchor: anchor,
  }
}

/** The meta-schema of a draft since 2019-09, or one of its vocabularies, which is a part of it. */
const modern = (draft: "2019-09" | "2020-12", vocabulary?: string): Json => {
  const base = `https://json-schema.org/draft/${draft}`
  const properties = draft === "2019-09" ? draft2019() : draft2020()
  const part = vocabulary === undefined ? undefined : new Set(vocabularies[vocabulary])
  return {
    $id: vocabulary === undefined ? `${base}/schema` : `${base}/meta/${vocabulary}`,
    $schema: `${base}/schema`,
    ...(draft === "2019-09" ? { $recursiveAnchor: true } : { $dynamicAnchor: "meta" }),
    type: ["object", "boolean"],
    properties: Object.fromEntries(
      Object.entries(properties).filter(([keyword]) => !part || part.has(keyword)),
    ),
  }
}

const made: Readonly<Record<string, () => Json>> = {
  "//json-schema.org/draft-04/schema": draft4,
  "//json-schema.org/draft-06/schema": () => plain("draft-06", since6),
  "//json-schema.org/draft-07/schema": () => plain("draft-07", since7),
  "//json-schema.org/draft/2019-09/schema": () => modern("2019-09"),
  "//json-schema.org/draft/2020-12/schema": () => modern("2020-12"),
}

const vocabularyAddress = /^\/\/json-schema\.org\/draft\/(2019-09|2020-12)\/meta\/([a-z-]+)$/

/** Returns the official meta-schema of an address, each draft's written as one resource. */
export const metaSchema = (address: string): Json | undefined => {
  const name = address.replace(/^https?:/, "").replace(/#$/, "")
  if (Object.hasOwn(made, name)) return made[name]!()
  const [, draft, vocabulary = ""] = vocabularyAddress.exec(name) ?? []
  return Object.hasOwn(vocabularies, vocabulary)
    ? modern(draft as "2019-09" | "2020-12", vocabulary)
    : undefined
}
