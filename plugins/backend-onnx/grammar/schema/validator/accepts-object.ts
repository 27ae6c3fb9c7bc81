import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isNumber, isObject, isTexts, type JsonObject } from "../json-value.ts"
import { type Check, isRule, type Judging, patternRule } from "./check.ts"

/** Applies the keywords of objects, but for `unevaluatedProperties`. */
export const acceptsObject = (
  judge: Judging,
  place: SchemaLocation,
  schema: JsonObject,
): Check | undefined => {
  const rules = [
    sizes(schema),
    properties(judge, place, schema),
    namesCheck(judge, place, schema),
    ...dependencies(judge.document, place, schema).map((one) => dependent(judge, one)),
  ].filter(isRule)
  if (rules.length === 0) return undefined
  return (value, run, seen) => !isObject(value) || rules.every((rule) => rule(value, run, seen))
}

const sizes = ({ required, minProperties, maxProperties }: JsonObject): Check | undefined => {
  const needed = isTexts(required) ? required : []
  const least = isNumber(minProperties) ? minProperties : 0
  const most = isNumber(maxProperties) ? maxProperties : Number.POSITIVE_INFINITY
  if (needed.length === 0 && least === 0 && most === Number.POSITIVE_INFINITY) return undefined
  const isCounted = least > 0 || most < Number.POSITIVE_INFINITY
  return (value) => {
    const count = isCounted ? Object.keys(value as JsonObject).length : 0
    return (
      count >= least &&
      count <= most &&
      needed.every((name) => Object.hasOwn(value as JsonObject, name))
    )
  }
}

/** Applies `properties`, `patternProperties` and `additionalProperties`. */
const properties = (
  judge: Judging,
  place: SchemaLocation,
  schema: JsonObject,
): Check | undefined => {
  const namesIn = (keyword: string) =>
    isObject(schema[keyword]) ? Object.keys(schema[keyword]) : []
  const under = (...names: readonly string[]) => judge.check(judge.document.at(place, ...names))
  const declared = new Map(
    namesIn("properties").map((name) => [name, under("properties", name)] as const),
  )
  const patterns = namesIn("patternProperties").map(
    (pattern) => [patternRule(pattern), under("patternProperties", pattern)] as const,
  )
  const rest = Object.hasOwn(schema, "additionalProperties")
    ? under("additionalProperties")
    : undefined
  if (declared.size === 0 && patterns.length === 0 && !rest) return undefined
  return (value, run, seen) => {
    for (const [name, part] of Object.entries(value as JsonObject)) {
      const own = declared.get(name)
      let isKnown = own !== undefined
      if (own && !own(part, run)) return false
      for (const [matches, check] of patterns) {
        if (!matches(name, run)) continue
        isKnown = true
        if (!check(part, run)) return false
      }
      if (!isKnown && rest && !rest(part, run)) return false
      if (isKnown || rest) seen?.addName(name)
    }
    return true
  }
}

const namesCheck = (
  judge: Judging,
  place: SchemaLocation,
  schema: JsonObject,
): Check | undefined => {
  if (!Object.hasOwn(schema, "propertyNames")) return undefined
  const check = judge.check(judge.document.at(place, "propertyNames"))
  return (value, run) => Object.keys(value as JsonObject).every((name) => check(name, run))
}

const dependent = (judge: Judging, { name, needs, rule }: Dependency): Check => {
  const check = rule && judge.check(rule)
  return (value, run, seen) =>
    !Object.hasOwn(value as JsonObject, name) ||
    (needs
      ? needs.every((other) => Object.hasOwn(value as JsonObject, other))
      : check!(value, run, seen))
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
