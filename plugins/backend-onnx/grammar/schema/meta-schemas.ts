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
})

const draft2019 = (): Json => ({
  $id: "https://json-schema.org/draft/2019-09/schema",
  $schema: "https://json-schema.org/draft/2019-09/schema",
  $recursiveAnchor: true,
  type: ["object", "boolean"],
  properties: {
    ...since2019({ $recursiveRef: "#" }),
    $anchor: { type: "string", pattern: "^[A-Za-z][-A-Za-z0-9.:_]*$" },
    $recursiveAnchor: flag,
  },
})

const draft2020 = (): Json => {
  const self = { $dynamicRef: "#meta" }
  const anchor = { type: "string", pattern: "^[A-Za-z_][-A-Za-z0-9._]*$" }
  const { additionalItems: _, ...rest } = since2019(self)
  return {
    $id: "https://json-schema.org/draft/2020-12/schema",
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $dynamicAnchor: "meta",
    type: ["object", "boolean"],
    properties: {
      ...rest,
      items: self,
      prefixItems: { type: "array", minItems: 1, items: self },
      $anchor: anchor,
      $dynamicAnchor: anchor,
      $dynamicRef: address,
      $recursiveAnchor: anchor,
    },
  }
}

const made: Readonly<Record<string, () => Json>> = {
  "//json-schema.org/draft-04/schema": draft4,
  "//json-schema.org/draft-06/schema": () => plain("draft-06", since6),
  "//json-schema.org/draft-07/schema": () => plain("draft-07", since7),
  "//json-schema.org/draft/2019-09/schema": draft2019,
  "//json-schema.org/draft/2020-12/schema": draft2020,
}

/**
 * Returns the official meta-schema of an address, each written as one resource: its vocabularies
 * are no resources of their own here.
 */
export const metaSchema = (address: string): Json | undefined => {
  const name = address.replace(/^https?:/, "").replace(/#$/, "")
  return Object.hasOwn(made, name) ? made[name]!() : undefined
}
