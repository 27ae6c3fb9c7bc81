import { numberFormat } from "../formats.ts"
import { isCount, isNumber, type JsonObject } from "../json-value.ts"
import { mostNumber } from "../numbers.ts"
import { withoutMatch } from "../pattern.ts"
import type { EnforcedSchema } from "../reading.ts"
import { formatRule } from "../validator/format-rules.ts"
import type { Violated } from "./negation.ts"

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
    return negating.read({ ...place, schema: { type, ...bound } })
  }
  const format = numberFormat(schema.format)
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

/**
 * Patterns that match every text which some validator takes for the format: what they do not match
 * certainly lacks it.
 */
export const outerPatterns: Readonly<Record<string, string>> = {
  date: "^\\d{4}-\\d\\d-\\d\\d$",
  time: "^\\d\\d:\\d\\d",
  "iso-time": "^\\d\\d:\\d\\d",
  "date-time": "^\\d{4}-\\d\\d-\\d\\d[^\\d]",
  "iso-date-time": "^\\d{4}-\\d\\d-\\d\\d[^\\d]",
  duration: "^[Pp]",
  email: "@",
  "idn-email": "@",
  hostname: "^[\\w.-]*$",
  ipv4: "^[\\d.]+$",
  ipv6: ":[\\s\\S]*:",
  uuid: "^(?:urn:uuid:|\\{)?[0-9A-Fa-f-]{32,}\\}?$",
  uri: ":",
  iri: ":",
  url: ":",
  "json-pointer": "^(?:/|$)",
  "relative-json-pointer": "^\\d",
  byte: "^[\\w+/=\\s-]*$",
}

/** Texts of other lengths, and those that do not match a pattern or have no such format. */
export const violatedText: Violated = (negating, place) => {
  const { minLength, maxLength, pattern, format } = place.schema as JsonObject
  const text = (bound: JsonObject): EnforcedSchema =>
    negating.read({ ...place, schema: { type: "string", ...bound } })
  const outer = Object.hasOwn(outerPatterns, String(format)) && outerPatterns[String(format)]
  // what is an annotation is never violated
  const isJudged = typeof format === "string" && formatRule(format) !== undefined
  return [
    ...(isCount(minLength) && minLength > 0 ? [text({ maxLength: minLength - 1 })] : []),
    ...(isCount(maxLength) ? [text({ minLength: maxLength + 1 })] : []),
    ...(typeof pattern === "string" ? [text({ pattern: withoutMatch(pattern) })] : []),
    ...(outer ? [text({ pattern: withoutMatch(outer) })] : []),
    ...(isJudged && !outer ? [negating.loosely({ type: "string" })] : []),
  ]
}
