import { acceptsValue } from "./accepts.ts"
import { dependencies } from "./accepts-object.ts"
import { applicators } from "./arrays.ts"
import { isCount, isObject, isTexts, type JsonObject } from "./json-value.ts"
import { PatternRefused, wholePattern } from "./pattern.ts"
import { allOf, anyOf, type EnforcedSchema, type Keywords, type Reading } from "./reading.ts"

const isTrue = (schema: unknown): boolean =>
  schema === true || (isObject(schema) && Object.keys(schema).length === 0)

/** The maximum number of alternatives where one of several optional properties must be present. */
const mostAlternatives = 40

interface Shape {
  properties: Map<string, EnforcedSchema>
  patterns: Map<string, EnforcedSchema>
  /** Schema of all other properties. */
  rest: EnforcedSchema
  required: readonly string[]
}

const propertiesOf = (of: Keywords): Map<string, EnforcedSchema> => {
  const properties = of.value("properties", isObject, "an object of schemas")
  if (properties) of.enforce("properties")
  return new Map(Object.keys(properties ?? {}).map((name) => [name, of.read("properties", name)]))
}

const patternsOf = (of: Keywords): Map<string, EnforcedSchema> => {
  const found = new Map<string, EnforcedSchema>()
  const patterns = of.value("patternProperties", isObject, "an object of schemas")
  if (!patterns) return found
  try {
    for (const pattern of Object.keys(patterns))
      found.set(wholePattern(pattern), of.read("patternProperties", pattern))
    of.enforce("patternProperties")
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    of.refuse("patternProperties", `can't be kept: ${cause.message}`)
    return new Map()
  }
  return found
}

const restOf = (of: Keywords): EnforcedSchema => {
  const isAbsent = !of.has("unevaluatedProperties")
  if (of.has("additionalProperties")) {
    of.enforce("additionalProperties")
    if (!isAbsent) of.enforce("unevaluatedProperties", "additionalProperties leaves nothing for it")
    return of.read("additionalProperties")
  }
  if (isAbsent) return true
  if (isTrue(of.schema.unevaluatedProperties)) of.enforce("unevaluatedProperties")
  else if (applicators.some((keyword) => of.has(keyword)))
    of.refuse("unevaluatedProperties", "beside keywords that evaluate properties")
  else {
    of.enforce("unevaluatedProperties")
    return of.read("unevaluatedProperties")
  }
  return true
}

/**
 * Restricts names by `enum` or `pattern`, where nothing else is said about undeclared properties.
 */
const limitNames = (of: Keywords, document: Reading["document"], shape: Shape): void => {
  if (!of.has("propertyNames")) return
  const names = of.schema.propertyNames
  const rule = isObject(names)
    ? Object.keys(names).filter((keyword) => keyword !== "type" || names.type !== "string")
    : []
  if (names === true || (isObject(names) && rule.length === 0)) {
    of.enforce("propertyNames")
    return
  }
  const isPlain = shape.patterns.size === 0 && isObject(names) && rule.length === 1
  const listed = isPlain && isTexts(names.enum) ? names.enum : undefined
  const pattern =
    isPlain &&
    typeof names.pattern === "string" &&
    (shape.rest === true || shape.properties.size === 0)
      ? patternOrNone(names.pattern)
      : undefined
  if (!listed && pattern === undefined) {
    of.refuse("propertyNames", "only an enum, or a pattern beside nothing else about names")
    return
  }
  of.enforce("propertyNames")
  for (const name of shape.properties.keys())
    if (!acceptsValue(document, of.inside("propertyNames"), name)) shape.properties.set(name, false)
  for (const name of listed ?? [])
    if (!shape.properties.has(name)) shape.properties.set(name, shape.rest)
  if (pattern !== undefined) shape.patterns.set(pattern, shape.rest)
  shape.rest = false
}

const patternOrNone = (pattern: string): string | undefined => {
  try {
    return wholePattern(pattern)
  } catch {
    return undefined
  }
}

const emit = (shape: Shape, more: JsonObject = {}): EnforcedSchema => ({
  type: "object",
  ...(shape.properties.size > 0 && { properties: Object.fromEntries(shape.properties) }),
  ...(shape.patterns.size > 0 && { patternProperties: Object.fromEntries(shape.patterns) }),
  ...(shape.rest !== true && { additionalProperties: shape.rest }),
  ...(shape.required.length > 0 && { required: shape.required }),
  ...more,
})

/**
 * Reads `minProperties` and `maxProperties`: llguidance counts properties only where all declared
 * ones are required.
 */
const countProperties = (of: Keywords, shape: Shape): EnforcedSchema => {
  const least = of.value("minProperties", isCount, "a whole number that is not negative") ?? 0
  const most =
    of.value("maxProperties", isCount, "a whole number that is not negative") ??
    Number.POSITIVE_INFINITY
  const optional = [...shape.properties]
    .filter(([name, schema]) => schema !== false && !shape.required.includes(name))
    .map(([name]) => name)
  const isOpen = shape.rest !== false || shape.patterns.size > 0
  const fixed = shape.required.length
  if (fixed > most || least > most || (!isOpen && least > fixed + optional.length))
    return sayCounted(of, false)
  const without = () => Object.fromEntries(optional.map((name) => [name, false]))
  const parts: EnforcedSchema[] = [emit(shape)]
  const isBounded = most < Number.POSITIVE_INFINITY && (isOpen || most < fixed + optional.length)
  const isUncounted = isBounded && most !== fixed && optional.length > 0
  if (isUncounted)
    of.refuse("maxProperties", "is counted only where all declared properties are required")
  else if (isBounded && most === fixed)
    parts.push({
      type: "object",
      ...(optional.length > 0 && { properties: without() }),
      maxProperties: fixed,
    })
  else if (isBounded) parts[0] = emit(shape, { maxProperties: most })
  if (of.has("maxProperties") && !isUncounted) of.enforce("maxProperties")
  if (of.has("minProperties") && least <= fixed) of.enforce("minProperties")
  return allOf(
    least > fixed ? [...parts, countLeast(of, shape, { least, optional, isOpen })] : parts,
  )
}

const sayCounted = (of: Keywords, result: EnforcedSchema): EnforcedSchema => {
  for (const keyword of ["minProperties", "maxProperties"]) if (of.has(keyword)) of.enforce(keyword)
  return result
}

const countLeast = (
  of: Keywords,
  shape: Shape,
  count: { readonly least: number; readonly optional: readonly string[]; readonly isOpen: boolean },
): EnforcedSchema => {
  const { least, optional, isOpen } = count
  const missing = least - shape.required.length
  if (
    isOpen
      ? missing > 1 || optional.length > mostAlternatives
      : missing > 1 && missing < optional.length
  ) {
    // one name is one property; of two written names the second may repeat the first
    of.refuse("minProperties", "properties are only counted up to one more than the required ones")
    return true
  }
  of.enforce("minProperties")
  if (!isOpen && missing === optional.length) return { type: "object", required: optional }
  const without = Object.fromEntries(optional.map((name) => [name, false]))
  const another: EnforcedSchema = {
    type: "object",
    ...(optional.length > 0 && { properties: without }),
    minProperties: least,
  }
  return anyOf([
    ...optional.map((name) => ({ type: "object", required: [name] })),
    ...(isOpen ? [another] : []),
  ])
}

/** Reads the keywords of objects. */
export const readObject = (of: Keywords, reading: Reading): EnforcedSchema => {
  const required = [...new Set(of.value("required", isTexts, "a list of names") ?? [])]
  if (of.has("required")) of.enforce("required")
  const properties = propertiesOf(of)
  const patterns = patternsOf(of)
  // patterns that are not enforced leave their properties open
  const isLoose =
    of.has("patternProperties") &&
    patterns.size < Object.keys(of.schema.patternProperties as JsonObject).length
  const rest = restOf(of)
  const shape: Shape = { properties, patterns, rest: isLoose ? true : rest, required }
  limitNames(of, reading.document, shape)
  return allOf([countProperties(of, shape), ...dependent(of, reading)])
}

/** Reads dependencies: either the property is absent, or its dependency holds. */
const dependent = (of: Keywords, reading: Reading): readonly EnforcedSchema[] => {
  const found = dependencies(reading.document, of.place, of.schema)
  for (const keyword of new Set(found.map((one) => one.keyword))) of.enforce(keyword)
  return found.map(({ name, needs, rule }) => {
    const present: EnforcedSchema = {
      type: "object",
      required: [...new Set([name, ...(needs ?? [])])],
    }
    return anyOf([
      { type: "object", properties: { [name]: false } },
      allOf([present, ...(rule ? [reading.read(rule)] : [])]),
    ])
  })
}
