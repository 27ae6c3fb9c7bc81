import type { Json } from "../../../../core/json.ts"
import { isObject, isTexts, type JsonType } from "./json-value.ts"

/** Keywords that apply to values of one type only. */
export const keywordsOf: Readonly<Record<JsonType, readonly string[]>> = {
  null: [],
  boolean: [],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  string: ["minLength", "maxLength", "pattern"],
  array: [
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
  ],
  object: [
    ...[
      "properties",
      "patternProperties",
      "additionalProperties",
      "required",
      "minProperties",
      "maxProperties",
      "propertyNames",
    ],
    ...["dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"],
  ],
}
/** All keywords that are read. */
export const handled = new Set([
  "type",
  "enum",
  "const",
  "format",
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "$dynamicRef",
  "$recursiveRef",
  ...Object.values(keywordsOf).flat(),
])

/** Keywords whose schemas are merged with all others of a schema. */
export const combining = ["$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf", "allOf"]

/** Keywords that hold names of properties, as a list or as keys. */
export const namingKeywords = ["properties", "required", "dependentRequired", "dependentSchemas"]
export const namesIn = (value: Json): readonly string[] =>
  isTexts(value) ? value : isObject(value) ? Object.keys(value) : []
