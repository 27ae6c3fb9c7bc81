import type { Json } from "../../../../../core/json.ts"
import { atScale, decimalOf } from "../decimal.ts"
import { formatPattern, numberFormats } from "../formats.ts"
import { canonicalText, isEqual, isNumber, type JsonObject, typeOfValue } from "../json-value.ts"
import { type Check, patternRule } from "./check.ts"
import { formatRule } from "./format-rules.ts"
import type { LinearPattern } from "./linear-pattern.ts"

/** Applies `type`. */
export const acceptsType = ({ type }: JsonObject): Check | undefined => {
  if (type === undefined) return undefined
  const types = new Set<Json>(Array.isArray(type) ? type : [type])
  const hasIntegers = types.has("integer")
  return (value) => types.has(typeOfValue(value)) || (hasIntegers && Number.isInteger(value))
}

/** Applies `const` and `enum`. */
export const acceptsValues = (schema: JsonObject): Check | undefined => {
  const { enum: listed } = schema
  const hasConst = Object.hasOwn(schema, "const")
  if (!hasConst && !Array.isArray(listed)) return undefined
  const texts = Array.isArray(listed) ? new Set(listed.map(canonicalText)) : undefined
  const isPlain = Array.isArray(listed) && listed.every((one) => typeof one !== "object")
  return (value, run) => {
    if (hasConst && !isEqual(schema.const, value)) return false
    if (!texts) return true
    if (isPlain && typeof value === "object") return false
    const text = canonicalText(value)
    run.spend(Math.ceil(text.length / 16))
    return texts.has(text)
  }
}

/** Whether a number is a whole number of steps, in decimal: 0.07 is seven times 0.01. */
const isMultiple = (value: number, step: number): boolean => {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(step)) return value % step === 0
  if (!Number.isFinite(value) || step === 0) return false
  const [a, b] = [decimalOf(value), decimalOf(step)]
  const scale = Math.max(a.scale, b.scale)
  return atScale(a, scale, "up") % atScale(b, scale, "up") === 0n
}

type NumberRule = (value: number) => boolean

const numberRules = (schema: JsonObject): readonly NumberRule[] => {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema
  const rules: NumberRule[] = []
  if (isNumber(minimum))
    rules.push((value) => value > minimum || (value === minimum && exclusiveMinimum !== true))
  if (isNumber(maximum))
    rules.push((value) => value < maximum || (value === maximum && exclusiveMaximum !== true))
  if (isNumber(exclusiveMinimum)) rules.push((value) => value > exclusiveMinimum)
  if (isNumber(exclusiveMaximum)) rules.push((value) => value < exclusiveMaximum)
  if (isNumber(multipleOf)) rules.push((value) => isMultiple(value, multipleOf))
  if (typeof format === "string" && Object.hasOwn(numberFormats, format)) {
    const [least, most] = numberFormats[format]!
    rules.push((value) => value >= least && value <= most)
  }
  return rules
}

/** Applies the keywords of numbers. */
export const acceptsNumber = (schema: JsonObject): Check | undefined => {
  const rules = numberRules(schema)
  if (rules.length === 0) return undefined
  return (value) => typeof value !== "number" || rules.every((rule) => rule(value))
}

/** Counts code points. */
const lengthOf = (text: string): number => {
  let length = 0
  for (const _ of text) length++
  return length
}

/** Formats that are not enforced when they are written are annotations. */
const formatRules = (format: string): readonly LinearPattern[] => {
  const written = formatPattern(format)
  const rule = formatRule(format)
  if (rule) return [rule]
  return written === undefined ? [] : [patternRule(written)]
}

/** Applies the keywords of strings. */
export const acceptsText = (schema: JsonObject): Check | undefined => {
  const { minLength, maxLength, pattern, format } = schema
  const rules = [
    ...(typeof pattern === "string" ? [patternRule(pattern)] : []),
    ...(typeof format === "string" ? formatRules(format) : []),
  ]
  const [least, most] = [minLength, maxLength].map((bound) => (isNumber(bound) ? bound : undefined))
  if (rules.length === 0 && least === undefined && most === undefined) return undefined
  return (value, run) => {
    if (typeof value !== "string") return true
    run.spend(Math.ceil(value.length / 16))
    const length = least === undefined && most === undefined ? 0 : lengthOf(value)
    if (length < (least ?? 0) || length > (most ?? length)) return false
    return rules.every((rule) => rule(value, run))
  }
}
