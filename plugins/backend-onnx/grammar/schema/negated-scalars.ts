import { numberFormats } from "./formats.ts"
import { isCount, isNumber, type JsonObject } from "./json-value.ts"
import type { Violated } from "./negation.ts"
import { mostNumber } from "./numbers.ts"
import { withoutMatch } from "./pattern.ts"
import type { EnforcedSchema } from "./reading.ts"

/** Numbers outside of the bounds. */
export const violatedNumber: Violated = (negating, place, known) => {
  const schema = place.schema as JsonObject
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const type = known.kinds.has("fraction") ? "number" : "integer"
  const number = (bound: {
    readonly minimum?: number
    readonly maximum?: number
    readonly exclusiveMinimum?: number
    readonly exclusiveMaximum?: number
  }): EnforcedSchema => {
    const least = bound.minimum ?? bound.exclusiveMinimum ?? -mostNumber
    const most = bound.maximum ?? bound.exclusiveMaximum ?? mostNumber
    if (least > mostNumber || most < -mostNumber) return false
    const { enforced, isExact } = negating.reading.readAside({
      ...place,
      schema: { type, ...bound },
    })
    return isExact ? enforced : negating.loosely(enforced)
  }
  const format = numberFormats[String(schema.format)]
  return [
    ...(isNumber(minimum)
      ? [number(exclusiveMinimum === true ? { maximum: minimum } : { exclusiveMaximum: minimum })]
      : []),
    ...(isNumber(maximum)
      ? [number(exclusiveMaximum === true ? { minimum: maximum } : { exclusiveMinimum: maximum })]
      : []),
    ...(isNumber(exclusiveMinimum) ? [number({ maximum: exclusiveMinimum })] : []),
    ...(isNumber(exclusiveMaximum) ? [number({ minimum: exclusiveMaximum })] : []),
    ...(multipleOf === undefined ? [] : [negating.loosely({ type })]),
    ...(format
      ? [number({ exclusiveMaximum: format[0] }), number({ exclusiveMinimum: format[1] })]
      : []),
  ]
}

/** Texts of other lengths, and those that no pattern matches. */
export const violatedText: Violated = (negating, place) => {
  const { minLength, maxLength, pattern } = place.schema as JsonObject
  const text = (bound: JsonObject): EnforcedSchema => {
    const { enforced, isExact } = negating.reading.readAside({
      ...place,
      schema: { type: "string", ...bound },
    })
    return isExact ? enforced : negating.loosely(enforced)
  }
  // what lacks a format for one validator may have it for another: no text certainly lacks it
  return [
    ...(isCount(minLength) && minLength > 0 ? [text({ maxLength: minLength - 1 })] : []),
    ...(isCount(maxLength) ? [text({ minLength: maxLength + 1 })] : []),
    ...(typeof pattern === "string" ? [text({ pattern: withoutMatch(pattern) })] : []),
  ]
}
