import type { SchemaLocation } from "../document.ts"
import { isCount, type JsonObject } from "../json-value.ts"
import type { EnforcedSchema } from "../reading.ts"
import type { Known } from "./known.ts"
import type { Negating, Violated } from "./negation.ts"

/** Positions of an item that breaks a rule for all of them are written out up to this one. */
const mostPositions = 8

const ofLength = (least: number, most?: number): EnforcedSchema => ({
  type: "array",
  ...(least > 0 && { minItems: least }),
  ...(most !== undefined && { maxItems: most }),
})

const itemAt = (index: number, item: EnforcedSchema): EnforcedSchema => ({
  type: "array",
  prefixItems: [...Array.from({ length: index }, () => true), item],
  minItems: index + 1,
})

/** Arrays of other lengths, and those with an item that breaks its rule. */
export const violatedArray: Violated = (negating, place, known) => {
  const schema = place.schema as JsonObject
  const { minItems, maxItems, uniqueItems, contains, items, prefixItems } = schema
  const tuple = Array.isArray(items) ? "items" : Array.isArray(prefixItems) ? "prefixItems" : ""
  const fixed = tuple === "" ? 0 : (schema[tuple] as unknown[]).length
  const rest = Array.isArray(items) ? "additionalItems" : "items"
  const options: EnforcedSchema[] = []
  if (isCount(minItems) && minItems > 0) options.push(ofLength(0, minItems - 1))
  if (isCount(maxItems)) options.push(ofLength(maxItems + 1))
  if (uniqueItems === true && known.mostItems > 1) options.push(negating.loosely(ofLength(2)))
  for (let i = 0; i < fixed && i < known.mostItems; i++) {
    const item = negating.of(negating.document.at(place, tuple, i), known.item(i))
    if (item !== false) options.push(itemAt(i, item))
  }
  if (schema[rest] !== undefined)
    options.push(...someItem(negating, negating.document.at(place, rest), fixed, known))
  if (contains !== undefined) options.push(contained(negating, place, known))
  if (schema.unevaluatedItems !== undefined && schema.unevaluatedItems !== true)
    options.push(negating.loosely({ type: "array" }))
  return options
}

/** Some item from a position on breaks the rule. */
const someItem = (
  negating: Negating,
  rule: SchemaLocation,
  from: number,
  known: Known,
): readonly EnforcedSchema[] => {
  if (rule.schema === true || known.mostItems <= from) return []
  if (rule.schema === false) return [ofLength(from + 1)]
  if (known.mostItems - from > mostPositions) return [negating.loosely(ofLength(from + 1))]
  return Array.from({ length: known.mostItems - from }, (_, i) => from + i).flatMap((i) => {
    const item = negating.of(rule, known.item(i))
    return item === false ? [] : [itemAt(i, item)]
  })
}

/** No item, or too few of them, is what an array must contain. */
const contained = (negating: Negating, place: SchemaLocation, known: Known): EnforcedSchema => {
  const { minContains, maxContains } = place.schema as JsonObject
  if (minContains === 0 && maxContains === undefined) return false
  if ((minContains ?? 1) !== 1 || maxContains !== undefined)
    return negating.loosely({ type: "array" })
  return {
    type: "array",
    items: negating.of(
      negating.document.at(place, "contains"),
      known.item(Number.MAX_SAFE_INTEGER),
    ),
  }
}
