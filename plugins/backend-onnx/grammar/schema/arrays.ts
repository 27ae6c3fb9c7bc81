import { isCount, isObject } from "./json-value.ts"
import type { EnforcedSchema, Keywords } from "./reading.ts"

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

const refuseSets = (of: Keywords, most: number): void => {
  if (of.value("uniqueItems", isBoolean, "true or false") === true && most > 1)
    of.refuse("uniqueItems", "what was written before is not compared")
  else if (of.has("uniqueItems")) of.enforce("uniqueItems")
  if (!of.has("contains"))
    for (const keyword of ["minContains", "maxContains"].filter((one) => of.has(one)))
      of.note(keyword, "means nothing without contains")
  else if (of.schema.minContains === 0 && !of.has("maxContains"))
    of.note("contains", "minContains is 0")
  else of.refuse("contains", "items are not counted by what they are")
}

const restOf = (of: Keywords, given: EnforcedSchema): EnforcedSchema => {
  if (!of.has("unevaluatedItems")) return given
  const all = of.schema.unevaluatedItems
  const isCovered =
    of.has("items") && (!Array.isArray(of.schema.items) || of.has("additionalItems"))
  if (all === true || (isObject(all) && Object.keys(all).length === 0) || isCovered)
    of.enforce("unevaluatedItems", "nothing is left for it")
  else if ([...applicators, "contains"].some((keyword) => of.has(keyword)))
    of.refuse("unevaluatedItems", "beside keywords that evaluate items")
  else {
    of.enforce("unevaluatedItems")
    return of.read("unevaluatedItems")
  }
  return given
}

/** Keywords of arrays. */
export const readArray = (of: Keywords): EnforcedSchema => {
  const least = of.value("minItems", isCount, "a whole number that is not negative") ?? 0
  const most = of.value("maxItems", isCount, "a whole number that is not negative")
  for (const keyword of ["minItems", "maxItems"]) if (of.has(keyword)) of.enforce(keyword)
  const { fixed, rest } = itemsOf(of)
  const items = restOf(of, rest)
  refuseSets(of, most ?? (items === false ? fixed.length : Number.POSITIVE_INFINITY))
  if (most !== undefined && least > most) return false
  const bounds = {
    ...(least > 0 && { minItems: least }),
    ...(most !== undefined && { maxItems: most }),
  }
  return {
    type: "array",
    ...(fixed.length > 0 && { prefixItems: fixed }),
    ...(items !== true && { items }),
    ...bounds,
  }
}
