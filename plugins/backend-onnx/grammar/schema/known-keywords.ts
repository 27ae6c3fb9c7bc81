import type { JsonType } from "./json-value.ts"

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
