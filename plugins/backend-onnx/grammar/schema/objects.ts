import type { Json } from "../../../../core/json.ts"
import { applicators } from "./arrays.ts"
import { uncounted } from "./counts.ts"
import type { SchemaLocation } from "./document.ts"
import { isCount, isObject, isTexts, type JsonObject } from "./json-value.ts"
import { anyPattern, areApart } from "./name-patterns.ts"
import { wholePattern } from "./pattern.ts"
import { allOf, anyOf, type EnforcedSchema, type Keywords, type Reading } from "./reading.ts"
import { readUnevaluated } from "./unevaluated.ts"
import { acceptsValue } from "./validator/accepts.ts"
import { dependencies } from "./validator/accepts-object.ts"

const isTrue = (schema: unknown): boolean =>
  schema === true || (isObject(schema) && Object.keys(schema).length === 0)

/** The maximum number of alternatives where one of several optional properties must be present. */
const mostAlternatives = 40
const mostLength = 1_000
const mostReferences = 8

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

const patternsOf = (of: Keywords, { options }: Reading): Map<string, EnforcedSchema> => {
  const patterns = of.value("patternProperties", isObject, "an object of schemas")
  if (!patterns) return new Map()
  const each = Object.keys(patterns).map(
    (pattern) => [pattern, of.read("patternProperties", pattern)] as const,
  )
  const whole = each.length === 0 ? "" : anyPattern(Object.keys(patterns))
  if (whole === undefined || (!options.isWritingPatterns && each.length > 0)) {
    of.guard("patternProperties")
    return new Map()
  }
  const written = each.map(([pattern, schema]) => [wholePattern(pattern), schema] as const)
  if (areApart(written.map(([pattern]) => pattern))) {
    of.enforce("patternProperties")
    return new Map(written)
  }
  // llguidance takes no patterns that a name may match several of
  of.guard(
    "patternProperties",
    "names that several patterns match are checked when they are written",
  )
  return new Map([[whole, anyOf(each.map(([, schema]) => schema))]])
}

const restOf = (of: Keywords, reading: Reading): { rest: EnforcedSchema; more: EnforcedSchema } => {
  const isAbsent = !of.has("unevaluatedProperties")
  if (of.has("additionalProperties")) {
    of.enforce("additionalProperties")
    if (!isAbsent) of.enforce("unevaluatedProperties", "additionalProperties leaves nothing for it")
    return { rest: of.read("additionalProperties"), more: true }
  }
  if (isAbsent) return { rest: true, more: true }
  if (applicators.some((keyword) => of.has(keyword)) && !isTrue(of.schema.unevaluatedProperties))
    return { rest: true, more: readUnevaluated(of, reading) }
  of.enforce("unevaluatedProperties")
  return { rest: of.read("unevaluatedProperties"), more: true }
}

/** Keywords of `propertyNames` that say nothing. */
const silent = ["type", "title", "description", "$comment"]

/** The schema of names, where it is only a reference that of its target. */
const namesSchema = (document: Reading["document"], place: SchemaLocation): Json => {
  let found = place
  for (let i = 0; i < mostReferences && isObject(found.schema); i++) {
    const [only, ...others] = document.references(found)
    if (!only?.target || others.length > 0 || Object.keys(found.schema).length > 1) break
    found = only.target
  }
  return found.schema
}

/**
 * Restricts names by `enum` or `pattern`, where nothing else is said about them; what remains is
 * checked when a name is written.
 */
const limitNames = (of: Keywords, { document, options }: Reading, shape: Shape): void => {
  if (!of.has("propertyNames")) return
  const place = of.inside("propertyNames")
  const names = namesSchema(document, place)
  const isAllowed = (name: Json) => typeof name === "string" && acceptsValue(document, place, name)
  for (const name of shape.properties.keys())
    if (!isAllowed(name)) shape.properties.set(name, false)
  const rules = isObject(names) ? Object.keys(names).filter((one) => !silent.includes(one)) : []
  const takesTexts = isObject(names) && (names.type === undefined || names.type === "string")
  if (names === true || (takesTexts && rules.length === 0)) {
    of.enforce("propertyNames")
    return
  }
  if (names === false) shape.patterns.clear()
  const isPlain = shape.patterns.size === 0 && isObject(names)
  const listed = isPlain && Array.isArray(names.enum) ? names.enum.filter(isAllowed) : undefined
  const pattern =
    isPlain &&
    !listed &&
    options.isWritingPatterns &&
    (shape.rest === true || shape.properties.size === 0)
      ? patternOf(names)
      : undefined
  if (names === false || listed || (pattern !== undefined && takesTexts && rules.length === 1))
    of.enforce("propertyNames")
  else of.guard("propertyNames", "names are checked when they are written")
  if (names !== false && !listed && pattern === undefined) return
  for (const name of (listed ?? []) as readonly string[])
    if (!shape.properties.has(name)) shape.properties.set(name, shape.rest)
  if (pattern !== undefined) shape.patterns.set(pattern, shape.rest)
  shape.rest = false
}

/** The pattern for whole names that one keyword stands for. */
const patternOf = ({ pattern, minLength, maxLength }: JsonObject): string | undefined => {
  if (typeof pattern === "string") return patternOrNone(pattern)
  if (isCount(minLength) && minLength <= mostLength) return `^(?s:.{${minLength},})$`
  return isCount(maxLength) && maxLength <= mostLength ? `^(?s:.{0,${maxLength}})$` : undefined
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
  if (isUncounted) of.guard("maxProperties", "properties are counted as they are written")
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
  if (!isOpen && chosen(optional.length, missing) <= mostAlternatives) {
    of.enforce("minProperties")
    return anyOf(
      choices(optional, missing).map((required) => ({ type: "object", required: [...required] })),
    )
  }
  if (!isOpen || missing > 1 || optional.length > mostAlternatives) {
    // one name is one property; of two written names the second may repeat the first
    of.guard("minProperties", "properties are counted when the object is finished")
    return optional.length === 0 ? { type: "object", minProperties: least } : true
  }
  of.enforce("minProperties")
  const without = Object.fromEntries(optional.map((name) => [name, false]))
  const another: EnforcedSchema = {
    type: "object",
    ...(optional.length > 0 && { properties: without }),
    minProperties: least,
  }
  return anyOf([...optional.map((name) => ({ type: "object", required: [name] })), another])
}

/** The number of ways to choose some of a number of names. */
const chosen = (of: number, count: number): number => {
  let ways = 1
  for (let i = 0; i < Math.min(count, of - count); i++) ways = (ways * (of - i)) / (i + 1)
  return ways
}

const choices = (names: readonly string[], count: number): readonly (readonly string[])[] => {
  if (names.length < count) return []
  if (count === 0) return [[]]
  return names.flatMap((name, i) =>
    choices(names.slice(i + 1), count - 1).map((others) => [name, ...others]),
  )
}

/** Reads the keywords of objects. */
export const readObject = (of: Keywords, reading: Reading): EnforcedSchema => {
  const required = [...new Set(of.value("required", isTexts, "a list of names") ?? [])]
  if (of.has("required")) of.enforce("required")
  const properties = propertiesOf(of)
  const patterns = patternsOf(of, reading)
  // patterns that are not written leave their properties open
  const isLoose = patterns.size === 0 && Object.keys(of.schema.patternProperties ?? {}).length > 0
  const { rest, more } = restOf(of, reading)
  const shape: Shape = { properties, patterns, rest: isLoose ? true : rest, required }
  limitNames(of, reading, shape)
  const counted = countProperties(of, shape)
  return allOf([
    reading.options.isCounting ? counted : uncounted(of, counted),
    more,
    ...dependent(of, reading),
  ])
}

/** Reads dependencies: either the property is absent, or its dependency holds. */
const dependent = (of: Keywords, reading: Reading): readonly EnforcedSchema[] => {
  const found = dependencies(reading.document, of.place, of.schema)
  // each of them doubles the alternatives
  const isWritten = found.length <= 1 || 2 ** found.length <= reading.options.mostWays
  for (const keyword of new Set(found.map((one) => one.keyword)))
    isWritten ? of.enforce(keyword) : of.guard(keyword)
  if (!isWritten) return []
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
