import type { Json } from "../../../../../core/json.ts"
import type { SchemaLocation } from "../document.ts"
import { canonicalText, isNumber, type JsonObject } from "../json-value.ts"
import { type Check, isRule, type Judging, type Run } from "./check.ts"

/** Applies the keywords of arrays, but for `unevaluatedItems`. */
export const acceptsArray = (
  judge: Judging,
  place: SchemaLocation,
  schema: JsonObject,
): Check | undefined => {
  const rules = [
    sizes(schema),
    contents(judge, place, schema),
    contained(judge, place, schema),
    schema.uniqueItems === true ? areUnique : undefined,
  ].filter(isRule)
  if (rules.length === 0) return undefined
  return (value, run, seen) =>
    !Array.isArray(value) || rules.every((rule) => rule(value, run, seen))
}

const sizes = ({ minItems, maxItems }: JsonObject): Check | undefined => {
  if (!isNumber(minItems) && !isNumber(maxItems)) return undefined
  const least = isNumber(minItems) ? minItems : 0
  const most = isNumber(maxItems) ? maxItems : Number.POSITIVE_INFINITY
  return (value) => itemsOf(value).length >= least && itemsOf(value).length <= most
}

const itemsOf = (value: Json): readonly Json[] => value as readonly Json[]

/** Applies `prefixItems` and `items`, or, as before draft 2020-12, `items` and `additionalItems`. */
const contents = (judge: Judging, place: SchemaLocation, schema: JsonObject): Check | undefined => {
  const tuple = Array.isArray(schema.items) ? "items" : "prefixItems"
  const rest = tuple === "items" ? "additionalItems" : "items"
  const listed = schema[tuple]
  const fixed = (Array.isArray(listed) ? listed : []).map((_, i) =>
    judge.check(judge.document.at(place, tuple, i)),
  )
  const others = Object.hasOwn(schema, rest)
    ? judge.check(judge.document.at(place, rest))
    : undefined
  if (fixed.length === 0 && !others) return undefined
  return (value, run, seen) => {
    const items = itemsOf(value)
    const count = others ? items.length : Math.min(fixed.length, items.length)
    for (let i = 0; i < count; i++) {
      if (!(fixed[i] ?? others)!(items[i], run)) return false
      seen?.addItem(i)
    }
    return true
  }
}

/** Applies `contains`; since draft 2020-12 it evaluates the items that it finds. */
const contained = (
  judge: Judging,
  place: SchemaLocation,
  schema: JsonObject,
): Check | undefined => {
  if (!Object.hasOwn(schema, "contains")) return undefined
  const { minContains, maxContains } = schema
  const least = isNumber(minContains) ? minContains : 1
  const most = isNumber(maxContains) ? maxContains : Number.POSITIVE_INFINITY
  const check = judge.check(judge.document.at(place, "contains"))
  const isEvaluating = judge.document.draftOf(place) === 2020
  return (value, run, seen) => {
    let count = 0
    for (const [i, item] of itemsOf(value).entries()) {
      if (!check(item, run)) continue
      count++
      if (isEvaluating) seen?.addItem(i)
    }
    return count >= least && count <= most
  }
}

const areUnique = (value: Json, run: Run): boolean => {
  const known = new Set<string>()
  for (const item of itemsOf(value)) {
    const text = canonicalText(item)
    run.spend(1 + Math.ceil(text.length / 16))
    if (known.has(text)) return false
    known.add(text)
  }
  return true
}
