import type { Json } from "../../../../core/json.ts"
import { isObject } from "./json-value.ts"
import type { EnforcedSchema } from "./reading.ts"

/**
 * llguidance's parser keeps at most 2,000 items per row, and fails in the middle of an answer where
 * there are more.
 */
const most = 1_900
const waysOfOptional = 4
const mostOptional = Math.floor((most - 1) / waysOfOptional)

type Parts = Readonly<Record<string, Json>>

/**
 * Returns why llguidance would exceed that limit, if it would: too many optional properties in a
 * row, or too many alternatives of objects and arrays.
 */
export const tooManyWays = (enforced: EnforcedSchema): string | undefined => {
  const defs = isObject(enforced) && isObject(enforced.$defs) ? enforced.$defs : {}
  const known = new Map<string, number>()
  let found: string | undefined
  const waysOfRef = (name: string): number => {
    const ways = known.get(name)
    if (ways !== undefined) return ways
    known.set(name, 1)
    known.set(name, waysOf(defs[name]!))
    return known.get(name)!
  }
  const ofObject = (schema: Parts): number => {
    for (const part of ["properties", "patternProperties"])
      if (isObject(schema[part])) for (const value of Object.values(schema[part])) waysOf(value)
    waysOf(schema.additionalProperties)
    const optional = longestOptional(schema)
    if (optional > mostOptional)
      found ??= `"properties" with ${optional} optional ones in a row; at most ${mostOptional} are kept`
    return 1 + waysOfOptional * optional
  }
  const waysOf = (schema: Json): number => {
    if (!isObject(schema)) return 1
    const each = (list: Json): readonly number[] => (Array.isArray(list) ? list.map(waysOf) : [])
    let ways = 1
    if (typeof schema.$ref === "string") ways = waysOfRef(schema.$ref.slice("#/$defs/".length))
    else if (Array.isArray(schema.allOf))
      ways = each(schema.allOf).reduce(
        (product, one) => Math.min(product * one, Number.MAX_SAFE_INTEGER),
        1,
      )
    else if (Array.isArray(schema.anyOf))
      ways = each(schema.anyOf).reduce((sum, one) => sum + one, 0)
    else if (Array.isArray(schema.enum))
      ways = schema.enum.filter((value) => typeof value === "object" && value !== null).length
    else if (schema.type === "object") ways = ofObject(schema)
    else
      for (const one of [schema.items, schema.prefixItems])
        Array.isArray(one) ? each(one) : waysOf(one)
    if (ways > most)
      found ??= `${ways} objects, arrays and properties to choose from at one place; at most ${most} are kept`
    return ways
  }
  for (const name of Object.keys(defs)) waysOfRef(name)
  waysOf(enforced)
  return found
}

const longestOptional = (schema: Parts): number => {
  const required = new Set((schema.required ?? []) as readonly string[])
  let longest = 0
  let run = 0
  for (const [name, value] of Object.entries(
    isObject(schema.properties) ? schema.properties : {},
  )) {
    if (value === false) continue
    run = required.has(name) ? 0 : run + 1
    longest = Math.max(longest, run)
  }
  return longest
}
