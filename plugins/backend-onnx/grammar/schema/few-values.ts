import type { Json } from "../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "./document.ts"
import { canonicalText, isNumber, isObject, type JsonObject } from "./json-value.ts"
import { judgeValue } from "./validator/accepts.ts"

/** More values are not enumerated. */
const mostValues = 1_000
const deepest = 16
/** Schemas that are looked at, as branches of branches multiply. */
const mostLooks = 2_000
/** The work of judging one of the values. */
const mostSteps = 2_000

/**
 * Returns all values of a schema that has only a few, none of them an array or object, each once.
 * Undefined: they are more, or it is not known.
 */
export const fewValues = (
  document: SchemaDocument,
  place: SchemaLocation,
): readonly Json[] | undefined => {
  const listed = listedValues(document, place, { depth: 0, looks: { left: mostLooks } })
  if (!listed || listed.length > mostValues) return undefined
  const distinct = new Map(listed.map((value) => [canonicalText(value), value]))
  const verdicts = [...distinct.values()].map((value) => ({
    value,
    isValid: judgeValue(document, place, value, { most: mostSteps }),
  }))
  if (verdicts.some(({ isValid }) => isValid === undefined)) return undefined
  const values = verdicts.filter(({ isValid }) => isValid).map(({ value }) => value)
  return values.every((value) => typeof value !== "object" || value === null) ? values : undefined
}

/** A superset of the values, if it is small. */
const listedValues = (
  document: SchemaDocument,
  place: SchemaLocation,
  { depth, looks }: { readonly depth: number; readonly looks: { left: number } },
): readonly Json[] | undefined => {
  const { schema } = place
  if (!isObject(schema) || depth > deepest || looks.left-- <= 0) return undefined
  const again = (other: SchemaLocation) =>
    listedValues(document, other, { depth: depth + 1, looks })
  const plain = plainValues(schema)
  if (plain) return plain
  for (const { target } of document.references(place)) {
    const referred = target && again(target)
    if (referred) return referred
  }
  const branches = (keyword: string) =>
    Array.isArray(schema[keyword])
      ? (schema[keyword] as Json[]).map((_, i) => again(document.at(place, keyword, i)))
      : []
  const part = branches("allOf").find((values) => values !== undefined)
  if (part) return part
  for (const keyword of ["anyOf", "oneOf"]) {
    const options = branches(keyword)
    if (options.length > 0 && options.every((values) => values !== undefined)) return options.flat()
  }
  return undefined
}

const plainValues = (schema: JsonObject): readonly Json[] | undefined => {
  if (Object.hasOwn(schema, "const")) return [schema.const]
  if (Array.isArray(schema.enum)) return schema.enum.length > mostValues ? undefined : schema.enum
  if (schema.type === "boolean") return [false, true]
  if (schema.type === "null") return [null]
  const { minimum, maximum } = schema
  if (schema.type !== "integer" || !isNumber(minimum) || !isNumber(maximum)) return undefined
  const first = Math.ceil(minimum)
  return maximum - first < mostValues
    ? Array.from({ length: Math.max(0, Math.floor(maximum) - first + 1) }, (_, i) => first + i)
    : undefined
}
