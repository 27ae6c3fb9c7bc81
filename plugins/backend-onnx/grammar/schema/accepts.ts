import type { Json } from "../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "./document.ts"
import { formatPattern } from "./formats.ts"
import {
  isCount,
  isEqual,
  isNumber,
  isObject,
  isTexts,
  type JsonObject,
  ownValue,
  typeOfValue,
} from "./json-value.ts"
import { ecmaPattern } from "./pattern.ts"

const deepest = 64

/**
 * Whether a value satisfies a schema: values of `const` and `enum` are checked here once rather
 * than by masks.
 */
export const acceptsValue = (
  document: SchemaDocument,
  place: SchemaLocation,
  value: Json,
  depth = 0,
): boolean => {
  const { schema } = place
  if (!isObject(schema)) return schema !== false
  if (depth > deepest) return false
  const sub = (from: SchemaLocation, part: Json) => acceptsValue(document, from, part, depth + 1)
  const list = (keyword: string): readonly SchemaLocation[] =>
    Array.isArray(schema[keyword])
      ? (schema[keyword] as Json[]).map((_, i) => document.at(place, keyword, i))
      : []
  const has = (keyword: string) => Object.hasOwn(schema, keyword)
  const passes = (keyword: string) => sub(document.at(place, keyword), value)
  const target = typeof schema.$ref === "string" ? document.follow(schema.$ref, place) : undefined
  return (
    isOfType(schema, value) &&
    (!has("const") || isEqual(schema.const, value)) &&
    (!Array.isArray(schema.enum) || schema.enum.some((one) => isEqual(one, value))) &&
    (typeof schema.$ref !== "string" || (target !== undefined && sub(target, value))) &&
    list("allOf").every((one) => sub(one, value)) &&
    (!has("anyOf") || list("anyOf").some((one) => sub(one, value))) &&
    (!has("oneOf") || list("oneOf").filter((one) => sub(one, value)).length === 1) &&
    (!has("not") || !passes("not")) &&
    (!has("if") ||
      (passes("if") ? !has("then") || passes("then") : !has("else") || passes("else"))) &&
    (!isNumber(value) || acceptsNumber(schema, value)) &&
    (typeof value !== "string" || acceptsText(schema, value)) &&
    (!Array.isArray(value) || acceptsArray(document, place, schema, value, sub)) &&
    (!isObject(value) || acceptsObject(document, place, schema, value, sub))
  )
}

type Sub = (place: SchemaLocation, part: Json) => boolean

const isOfType = ({ type }: JsonObject, value: Json): boolean => {
  if (type === undefined) return true
  const own = typeOfValue(value)
  return (Array.isArray(type) ? type : [type]).some(
    (one) => one === own || (one === "integer" && Number.isInteger(value)),
  )
}

const acceptsNumber = (schema: JsonObject, value: number): boolean => {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  return (
    (!isNumber(minimum) || value >= minimum) &&
    (!isNumber(maximum) || value <= maximum) &&
    (!isNumber(exclusiveMinimum) || value > exclusiveMinimum) &&
    (!isNumber(exclusiveMaximum) || value < exclusiveMaximum) &&
    (exclusiveMinimum !== true || value !== minimum) &&
    (exclusiveMaximum !== true || value !== maximum) &&
    (!isNumber(multipleOf) || Number.isInteger(value / multipleOf))
  )
}

const matches = (pattern: Json, text: string): boolean => {
  try {
    return typeof pattern !== "string" || ecmaPattern(pattern).test(text)
  } catch {
    return false
  }
}

const acceptsText = (
  { minLength, maxLength, pattern, format }: JsonObject,
  value: string,
): boolean => {
  const length = [...value].length
  return (
    (!isNumber(minLength) || length >= minLength) &&
    (!isNumber(maxLength) || length <= maxLength) &&
    matches(pattern, value) &&
    (typeof format !== "string" || matches(formatPattern(format), value))
  )
}

const acceptsArray = (
  document: SchemaDocument,
  place: SchemaLocation,
  schema: JsonObject,
  value: readonly Json[],
  sub: Sub,
): boolean => {
  const { minItems, maxItems, uniqueItems, items, prefixItems } = schema
  const tuple = Array.isArray(items)
    ? "items"
    : Array.isArray(prefixItems)
      ? "prefixItems"
      : undefined
  const rest = Array.isArray(items) ? "additionalItems" : "items"
  const fixed = tuple === undefined ? 0 : (schema[tuple] as Json[]).length
  const inside = (i: number) =>
    i < fixed ? document.at(place, tuple!, i) : document.at(place, rest)
  const contained = () => value.filter((item) => sub(document.at(place, "contains"), item)).length
  return (
    (!isNumber(minItems) || value.length >= minItems) &&
    (!isNumber(maxItems) || value.length <= maxItems) &&
    (uniqueItems !== true ||
      value.every((item, i) => value.slice(0, i).every((earlier) => !isEqual(item, earlier)))) &&
    value.every((item, i) => sub(inside(i), item)) &&
    (schema.contains === undefined ||
      (contained() >= Number(schema.minContains ?? 1) &&
        contained() <= Number(schema.maxContains ?? Number.POSITIVE_INFINITY)))
  )
}

const acceptsObject = (
  document: SchemaDocument,
  place: SchemaLocation,
  schema: JsonObject,
  value: JsonObject,
  sub: Sub,
): boolean => {
  const names = Object.keys(value)
  const { required, minProperties, maxProperties, properties, patternProperties } = schema
  const rules = isObject(patternProperties) ? Object.keys(patternProperties) : []
  const passes = (name: string): boolean => {
    const declared = isObject(properties) && Object.hasOwn(properties, name)
    const matching = rules.filter((rule) => matches(rule, name))
    const parts = [
      ...(declared ? [document.at(place, "properties", name)] : []),
      ...matching.map((rule) => document.at(place, "patternProperties", rule)),
    ]
    return (parts.length > 0 ? parts : [document.at(place, "additionalProperties")]).every((part) =>
      sub(part, ownValue(value, name)),
    )
  }
  return (
    (!isTexts(required) || required.every((name) => Object.hasOwn(value, name))) &&
    (!isCount(minProperties) || names.length >= minProperties) &&
    (!isCount(maxProperties) || names.length <= maxProperties) &&
    names.every(passes) &&
    (schema.propertyNames === undefined ||
      names.every((name) => sub(document.at(place, "propertyNames"), name))) &&
    dependencies(document, place, schema).every(
      ({ name, needs, rule }) =>
        !Object.hasOwn(value, name) ||
        (needs ? needs.every((other) => Object.hasOwn(value, other)) : sub(rule!, value)),
    )
  )
}

export interface Dependency {
  readonly keyword: string
  readonly name: string
  /** Either required names or a schema. */
  readonly needs?: readonly string[]
  readonly rule?: SchemaLocation
}

/** Reads `dependencies`, `dependentRequired` and `dependentSchemas`. */
export const dependencies = (
  document: SchemaDocument,
  place: SchemaLocation,
  schema: JsonObject,
): readonly Dependency[] =>
  ["dependentRequired", "dependentSchemas", "dependencies"].flatMap((keyword) =>
    Object.entries(isObject(schema[keyword]) ? schema[keyword] : {}).map(([name, what]) =>
      isTexts(what)
        ? { keyword, name, needs: what }
        : { keyword, name, rule: document.at(place, keyword, name) },
    ),
  )
