import type { Json } from "../../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isNumber, isObject, isTexts, type JsonObject, typeOfValue } from "../json-value.ts"
import { judgeValue } from "../validator/accepts.ts"
import { Known, propertyOf } from "./known.ts"

const deepest = 8

/** How many steps comparisons may still take; without any, schemas are not taken for disjoint. */
export interface Steps {
  left: number
}

/** The maximum number of steps of one comparison. */
const mostSteps = 500

/** Whether certainly no value satisfies both schemas, of which something is known. */
export const areDisjoint = (
  document: SchemaDocument,
  a: SchemaLocation,
  b: SchemaLocation,
  known = new Known(document, []),
  steps: Steps = { left: mostSteps },
): boolean => {
  const own = { left: Math.min(mostSteps, steps.left) }
  const given = own.left
  const found = compare(document, a, b, { known, steps: own, depth: 0 })
  steps.left -= given - own.left
  return found
}

interface Comparing {
  readonly known: Known
  readonly steps: Steps
  readonly depth: number
}

const compare = (
  document: SchemaDocument,
  a: SchemaLocation,
  b: SchemaLocation,
  { known, steps, depth }: Comparing,
): boolean => {
  if (a.schema === false || b.schema === false) return true
  if (!isObject(a.schema) || !isObject(b.schema) || depth > deepest || steps.left <= 0) return false
  const again = (x: SchemaLocation, y: SchemaLocation, of = known) =>
    compare(document, x, y, { known: of, steps, depth: depth + 1 })
  steps.left -= 1 + [known.values, valuesOf(a.schema), valuesOf(b.schema)].flat().length
  return (
    known.values?.every((value) =>
      [a, b].some((one) => judgeValue(document, one, value) === false),
    ) ||
    valuesApart(document, a, b) ||
    valuesApart(document, b, a) ||
    typesApart(document, a, b) ||
    sizesApart(a.schema, b.schema) ||
    objectsApart(document, a, b, { again, known }) ||
    partsOf(document, a).some((options) => options.every((option) => again(option, b))) ||
    partsOf(document, b).some((options) => options.every((option) => again(a, option)))
  )
}

/**
 * The alternatives of a schema beside its plain keywords: a value satisfies one option of each
 * part.
 */
const partsOf = (
  document: SchemaDocument,
  place: SchemaLocation,
): readonly (readonly SchemaLocation[])[] => {
  const schema = place.schema as JsonObject
  const list = (keyword: string) =>
    Array.isArray(schema[keyword])
      ? (schema[keyword] as Json[]).map((_, i) => document.at(place, keyword, i))
      : []
  const targets = document.references(place).flatMap(({ target }) => target ?? [])
  return [
    ...targets.map((target) => [target]),
    ...list("allOf").map((one) => [one]),
    ...["anyOf", "oneOf"].map(list).filter((options) => options.length > 0),
  ]
}

const valuesOf = (schema: JsonObject): readonly Json[] | undefined => {
  if (Object.hasOwn(schema, "const")) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

const valuesApart = (document: SchemaDocument, a: SchemaLocation, b: SchemaLocation): boolean =>
  valuesOf(a.schema as JsonObject)?.every((value) => judgeValue(document, b, value) === false) ??
  false

const plainTypes = (schema: JsonObject): readonly string[] | undefined => {
  const values = valuesOf(schema)
  if (values)
    return values.map((value) => (Number.isInteger(value) ? "integer" : typeOfValue(value)))
  const { type } = schema
  if (typeof type === "string") return [type]
  return isTexts(type) ? type : undefined
}

const typesApart = (_: SchemaDocument, a: SchemaLocation, b: SchemaLocation): boolean => {
  const [left, right] = [plainTypes(a.schema as JsonObject), plainTypes(b.schema as JsonObject)]
  if (!left || !right) return false
  const overlap = (x: string, y: string) =>
    x === y || (x === "integer" && y === "number") || (x === "number" && y === "integer")
  return !left.some((x) => right.some((y) => overlap(x, y)))
}

const onlyType = (schema: JsonObject): string | undefined => {
  const types = plainTypes(schema)
  return types?.length === 1 ? types[0]!.replace("integer", "number") : undefined
}

const ranges: Readonly<Record<string, readonly [string, string]>> = {
  number: ["minimum", "maximum"],
  string: ["minLength", "maxLength"],
  array: ["minItems", "maxItems"],
  object: ["minProperties", "maxProperties"],
}

/** Whether the sizes or ranges of two schemas of one type exclude each other. */
const sizesApart = (a: JsonObject, b: JsonObject): boolean => {
  const type = onlyType(a)
  const range = type === undefined || type !== onlyType(b) ? undefined : ranges[type]
  if (!range) return false
  const [least, most] = range
  const isAbove = (x: JsonObject, y: JsonObject) => {
    const [low, high] = [x[least], y[most]]
    if (isNumber(low) && isNumber(high) && low > high) return true
    if (type !== "number") return false
    const [lowOpen, highOpen] = [x.exclusiveMinimum, y.exclusiveMaximum]
    return (
      (isNumber(lowOpen) && isNumber(high) && lowOpen >= high) ||
      (isNumber(low) && isNumber(highOpen) && low >= highOpen) ||
      (isNumber(lowOpen) && isNumber(highOpen) && lowOpen >= highOpen)
    )
  }
  return isAbove(a, b) || isAbove(b, a)
}

type Again = (a: SchemaLocation, b: SchemaLocation, known?: Known) => boolean

const namesOf = (value: Json): readonly string[] => (isTexts(value) ? value : [])

/**
 * Whether both schemas require an object, and one of them requires a property that the other
 * forbids or requires to differ.
 */
const objectsApart = (
  document: SchemaDocument,
  a: SchemaLocation,
  b: SchemaLocation,
  { again, known }: { readonly again: Again; readonly known: Known },
): boolean => {
  const [left, right] = [a.schema as JsonObject, b.schema as JsonObject]
  const isObjects = [...known.kinds].every((kind) => kind === "object")
  if (!isObjects && onlyType(left) !== "object" && onlyType(right) !== "object") return false
  const wanted = new Set([...namesOf(left.required), ...namesOf(right.required)])
  return [...wanted].some((name) =>
    again(propertyOf(document, a, name), propertyOf(document, b, name), known.property(name)),
  )
}
