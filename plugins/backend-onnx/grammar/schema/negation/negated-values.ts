import type { Json } from "../../../../../core/json.ts"
import type { SchemaLocation } from "../document.ts"
import { isEqual, isObject, type JsonObject } from "../json-value.ts"
import { allOf, type EnforcedSchema } from "../reading.ts"
import { judgeValue } from "../validator/accepts.ts"
import { isWritable } from "../values.ts"
import { between, exceptTexts, union, valuesOfKind } from "./complements.ts"
import type { Known } from "./known.ts"
import { violatedArray } from "./negated-arrays.ts"
import { violatedObject } from "./negated-objects.ts"
import type { Negating } from "./negation.ts"

export const isValued = (schema: Json): boolean =>
  isObject(schema) && (Object.hasOwn(schema, "const") || Array.isArray(schema.enum))

/** Negates schemas that list values. */
export const exceptValues = (
  negating: Negating,
  places: readonly SchemaLocation[],
  known: Known,
): EnforcedSchema => {
  const place = places[0]!
  const all = places.flatMap((one) => {
    const schema = one.schema as JsonObject
    const isConstant = Object.hasOwn(schema, "const")
    const named = isConstant ? [schema.const] : (schema.enum as Json[])
    // a constant may be a part of another one, which is no place of the document
    return isConstant && Object.keys(schema).length === 1
      ? named
      : named.filter((value) => judgeValue(negating.document, one, value) !== false)
  })
  const possible = known.values
  const plain = new Set(all)
  const isAmong = (value: Json) =>
    plain.has(value) || (typeof value === "object" && all.some((one) => isEqual(one, value)))
  if (possible) return listed(possible.filter((value) => !isAmong(value)))
  const constant = (value: Json): SchemaLocation => ({ ...place, schema: { const: value } })
  return union([
    ...(known.kinds.has("null") && !all.includes(null) ? [{ type: "null" }] : []),
    ...(known.kinds.has("boolean") ? [booleansExcept(all)] : []),
    ...(known.kinds.has("integer") || known.kinds.has("fraction")
      ? between(valuesOfKind(all, "integer", "fraction") as readonly number[]).map((range) =>
          negating.read({ ...place, schema: { type: "number", ...range } }),
        )
      : []),
    ...(known.kinds.has("string")
      ? [exceptTexts(valuesOfKind(all, "string") as readonly string[])]
      : []),
    ...(["array", "object"] as const)
      .filter((kind) => known.kinds.has(kind))
      .map((kind) =>
        allOf([
          { type: kind },
          ...valuesOfKind(all, kind).map((value) =>
            union(partsApart(negating, constant(value), known)),
          ),
        ]),
      ),
  ])
}

export const listed = (values: readonly Json[]): EnforcedSchema => {
  const written = values.filter(isWritable)
  return written.length > 0 && { enum: written }
}

const booleansExcept = (values: readonly Json[]): EnforcedSchema => {
  const left = [true, false].filter((value) => !values.includes(value))
  return left.length === 2 ? { type: "boolean" } : listed(left)
}

/** Negates a list or an object that is a constant, as the schema that it would be. */
const partsApart = (
  negating: Negating,
  place: SchemaLocation,
  known: Known,
): readonly EnforcedSchema[] => {
  const value = (place.schema as JsonObject).const
  const constant = (part: Json) => ({ const: part })
  return Array.isArray(value)
    ? violatedArray(
        negating,
        {
          ...place,
          schema: {
            prefixItems: value.map(constant),
            minItems: value.length,
            maxItems: value.length,
          },
        },
        known,
      )
    : violatedObject(
        negating,
        {
          ...place,
          schema: {
            properties: Object.fromEntries(
              Object.entries(value as JsonObject).map(([name, part]) => [name, constant(part)]),
            ),
            required: Object.keys(value as JsonObject),
            additionalProperties: false,
          },
        },
        known,
      )
}
