import type { Json } from "../../../../core/json.ts"
import { areDisjoint } from "./disjoint.ts"
import type { SchemaLocation } from "./document.ts"
import { isObject, isTexts, typesOfJson } from "./json-value.ts"
import { anyOf, type EnforcedSchema, type Keywords, type Reading } from "./reading.ts"

const isList = (value: Json): value is readonly Json[] => Array.isArray(value) && value.length > 0

/** The maximum number of branches that are compared pairwise. */
const mostCompared = 200

/** Reads the keywords that combine schemas, except `$ref`. */
export const branches = (of: Keywords, reading: Reading): readonly EnforcedSchema[] => [
  ...all(of),
  any(of),
  one(of, reading),
  not(of),
  conditional(of),
]

const all = (of: Keywords): readonly EnforcedSchema[] => {
  const parts = of.value("allOf", isList, "a list of schemas")
  if (parts) of.enforce("allOf")
  return (parts ?? []).map((_, i) => of.read("allOf", i))
}

const any = (of: Keywords): EnforcedSchema => {
  const options = of.value("anyOf", isList, "a list of schemas")
  if (!options) return true
  of.enforce("anyOf")
  return anyOf(options.map((_, i) => of.read("anyOf", i)))
}

/**
 * llguidance can't count how many branches of a `oneOf` hold, so it is enforced as `anyOf` where no
 * two branches can hold at once, and refused otherwise.
 */
const one = (of: Keywords, reading: Reading): EnforcedSchema => {
  const options = of.value("oneOf", isList, "a list of schemas")
  if (!options) return true
  const names = options.map(onlyRequires)
  if (
    options.length > 1 &&
    names.every((name) => name !== undefined) &&
    new Set(names).size === names.length
  ) {
    of.enforce("oneOf")
    return anyOf(names.map((name) => requiresOnly(name!, names as readonly string[])))
  }
  const overlap = options.length > mostCompared ? [0, 1] : overlapOf(of, reading, options.length)
  if (overlap)
    of.refuse(
      "oneOf",
      `it is not certain that no value satisfies both ${overlap[0]} and ${overlap[1]}; anyOf would be kept`,
    )
  else of.enforce("oneOf")
  return anyOf(options.map((_, i) => of.read("oneOf", i)))
}

const overlapOf = (
  of: Keywords,
  reading: Reading,
  count: number,
): readonly [number, number] | undefined => {
  const places: readonly SchemaLocation[] = Array.from({ length: count }, (_, i) =>
    of.inside("oneOf", i),
  )
  for (let a = 0; a < count; a++)
    for (let b = a + 1; b < count; b++)
      if (!areDisjoint(reading.document, places[a]!, places[b]!)) return [a, b]
  return undefined
}

/** Returns the name of a schema that is only `{required: ["a"]}`. */
const onlyRequires = (schema: Json): string | undefined =>
  isObject(schema) &&
  Object.keys(schema).length === 1 &&
  isTexts(schema.required) &&
  schema.required.length === 1
    ? schema.required[0]
    : undefined

const requiresOnly = (name: string, names: readonly string[]): EnforcedSchema => ({
  type: "object",
  properties: Object.fromEntries(
    names.filter((other) => other !== name).map((other) => [other, false]),
  ),
  required: [name],
})

const not = (of: Keywords): EnforcedSchema => {
  if (!of.has("not")) return true
  const inner = of.schema.not
  const keywords = isObject(inner) ? Object.keys(inner) : []
  const without = (enforced: EnforcedSchema): EnforcedSchema => {
    of.enforce("not")
    return enforced
  }
  if (inner === false) return without(true)
  if (inner === true || (isObject(inner) && keywords.length === 0)) return without(false)
  const name = onlyRequires(inner)
  if (name !== undefined) return without({ type: "object", properties: { [name]: false } })
  const types =
    keywords.length === 1 && keywords[0] === "type"
      ? (inner as { readonly type: Json }).type
      : undefined
  const refused = typeof types === "string" ? [types] : types
  if (isTexts(refused) && !refused.includes("integer"))
    return without(
      anyOf(typesOfJson.filter((type) => !refused.includes(type)).map((type) => ({ type }))),
    )
  of.refuse("not", "only a type, or one required property, can be excluded")
  return true
}

const conditional = (of: Keywords): EnforcedSchema => {
  const rest = ["then", "else"].filter((keyword) => of.has(keyword))
  if (!of.has("if")) for (const keyword of rest) of.note(keyword, "means nothing without if")
  else if (rest.length === 0) of.note("if", "means nothing without then or else")
  else {
    for (const keyword of ["if", ...rest]) of.refuse(keyword, "conditions are not kept")
  }
  return true
}
