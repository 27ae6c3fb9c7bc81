import type { SchemaDocument } from "./document.ts"
import { fewValues } from "./few-values.ts"
import { isCount, isNumber, isObject } from "./json-value.ts"
import type { EnforcedSchema, Keywords, Reading } from "./reading.ts"

const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

/** Keywords that apply schemas to items or properties which other keywords may have evaluated. */
export const applicators = [
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "dependentSchemas",
  "dependencies",
  "$dynamicRef",
  "$recursiveRef",
]

const itemsOf = (
  of: Keywords,
): { readonly fixed: readonly EnforcedSchema[]; readonly rest: EnforcedSchema } => {
  const tuple = Array.isArray(of.schema.items)
    ? "items"
    : Array.isArray(of.schema.prefixItems)
      ? "prefixItems"
      : undefined
  const restKeyword = Array.isArray(of.schema.items) ? "additionalItems" : "items"
  const fixed =
    tuple === undefined ? [] : (of.schema[tuple] as unknown[]).map((_, i) => of.read(tuple, i))
  const rest = of.has(restKeyword) ? of.read(restKeyword) : true
  for (const keyword of ["prefixItems", "items"]) if (of.has(keyword)) of.enforce(keyword)
  if (of.has("additionalItems")) {
    if (restKeyword === "additionalItems") of.enforce("additionalItems")
    else of.note("additionalItems", "means nothing where items is one schema")
  }
  return { fixed, rest }
}

/** Returns how many different items there can be, where they are few. */
const readUnique = (of: Keywords, document: SchemaDocument, most: number): number => {
  const isSet = of.value("uniqueItems", isBoolean, "true or false") === true
  if (!isSet || most <= 1) {
    if (of.has("uniqueItems")) of.enforce("uniqueItems")
    return Number.POSITIVE_INFINITY
  }
  of.guard("uniqueItems", "each item is compared when it is finished")
  const hasOneSchema = of.has("items") && !Array.isArray(of.schema.items)
  return hasOneSchema && !of.has("prefixItems")
    ? (fewValues(document, of.inside("items"))?.length ?? Number.POSITIVE_INFINITY)
    : Number.POSITIVE_INFINITY
}

/** Returns the least number of items that `contains` asks for. */
const readContains = (of: Keywords): number => {
  const counts = ["minContains", "maxContains"].filter((one) => of.has(one))
  if (!of.has("contains")) {
    for (const keyword of counts) of.note(keyword, "means nothing without contains")
    return 0
  }
  for (const keyword of counts) {
    of.value(keyword, isCount, "a whole number that is not negative")
    of.enforce(keyword, "counted when the array is finished")
  }
  if (of.schema.minContains === 0 && !of.has("maxContains")) {
    of.note("contains", "minContains is 0")
    return 0
  }
  of.guard("contains", "counted when the array is finished")
  return isNumber(of.schema.minContains) ? of.schema.minContains : 1
}

const restOf = (of: Keywords, given: EnforcedSchema): EnforcedSchema => {
  if (!of.has("unevaluatedItems")) return given
  const all = of.schema.unevaluatedItems
  const isCovered =
    of.has("items") && (!Array.isArray(of.schema.items) || of.has("additionalItems"))
  if (all === true || (isObject(all) && Object.keys(all).length === 0) || isCovered)
    of.enforce("unevaluatedItems", "nothing is left for it")
  else if ([...applicators, "contains"].some((keyword) => of.has(keyword)))
    of.guard("unevaluatedItems")
  else {
    of.enforce("unevaluatedItems")
    return of.read("unevaluatedItems")
  }
  return given
}

/** Keywords of arrays. */
export const readArray = (of: Keywords, { document }: Reading): EnforcedSchema => {
  const given = of.value("minItems", isCount, "a whole number that is not negative") ?? 0
  const most = of.value("maxItems", isCount, "a whole number that is not negative")
  for (const keyword of ["minItems", "maxItems"]) if (of.has(keyword)) of.enforce(keyword)
  const { fixed, rest } = itemsOf(of)
  const items = restOf(of, rest)
  const possible = most ?? (items === false ? fixed.length : Number.POSITIVE_INFINITY)
  const bound = Math.min(most ?? Number.POSITIVE_INFINITY, readUnique(of, document, possible))
  const least = Math.max(given, readContains(of))
  if (least > bound) return false
  const bounds = {
    ...(least > 0 && { minItems: least }),
    ...(bound < Number.POSITIVE_INFINITY && { maxItems: bound }),
  }
  return {
    type: "array",
    ...(fixed.length > 0 && { prefixItems: fixed }),
    ...(items !== true && { items }),
    ...bounds,
  }
}
