import type { Json } from "../../../../core/json.ts"
import { isObject } from "./json-value.ts"
import { PatternRefused, wholePattern } from "./pattern.ts"
import type { EnforcedSchema } from "./reading.ts"

type Parts = Readonly<Record<string, Json>>

/** Returns one pattern for whole names; undefined where one of them can't be read. */
export const anyPattern = (patterns: readonly string[]): string | undefined => {
  try {
    const [only, ...others] = patterns.map(wholePattern)
    if (only === undefined || others.length === 0) return only
    return `^(?:${[only, ...others].map((one) => one.slice(1, -1)).join("|")})$`
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    return undefined
  }
}

/** The characters that each name begins with, as `wholePattern` writes them. */
const beginning = /^\^\(\?:((?:[0-9A-Za-z]|\\x\{[0-9a-f]+\})*)([*?+{]?)/

const beginningOf = (whole: string): string => {
  const found = whole.includes("|") ? undefined : beginning.exec(whole)
  if (!found) return ""
  return found[2] === "" ? found[1]! : found[1]!.replace(/(?:.|\\x\{[0-9a-f]+\})$/, "")
}

/** Whether certainly no name matches two of the patterns, which are for whole names. */
export const areApart = (patterns: readonly string[]): boolean => {
  if (patterns.length <= 1) return true
  const beginnings = patterns.map(beginningOf).sort()
  // what begins with another stands behind it
  return beginnings.every((one, i) => i === 0 || !one.startsWith(beginnings[i - 1]!))
}

/**
 * Whether schemas are merged that have different patterns for the same names, which llguidance
 * refuses.
 */
export const overlapsPatterns = (enforced: EnforcedSchema): boolean => {
  if (!JSON.stringify(enforced).includes('"patternProperties"')) return false
  const defs = isObject(enforced) && isObject(enforced.$defs) ? enforced.$defs : {}
  const known = new Map<Json, ReadonlySet<string>>()
  let isFound = false
  const patternsOf = (schema: Json): ReadonlySet<string> => {
    if (!isObject(schema)) return new Set()
    const before = known.get(schema)
    if (before) return before
    known.set(schema, new Set())
    const fresh = lookInto(schema)
    known.set(schema, fresh)
    return fresh
  }
  const each = (list: Json) =>
    new Set(Object.values((list ?? []) as readonly Json[]).flatMap((one) => [...patternsOf(one)]))
  const lookInto = (schema: Parts): ReadonlySet<string> => {
    if (typeof schema.$ref === "string")
      return patternsOf(defs[schema.$ref.slice("#/$defs/".length)])
    if (schema.anyOf) return each(schema.anyOf)
    if (schema.allOf) {
      const merged = each(schema.allOf)
      isFound ||= !areApart([...merged])
      return merged
    }
    for (const list of ["properties", "patternProperties", "prefixItems"]) each(schema[list])
    for (const one of ["items", "additionalProperties"]) patternsOf(schema[one])
    return new Set(isObject(schema.patternProperties) ? Object.keys(schema.patternProperties) : [])
  }
  // a definition is found before those that it refers to: in reverse, nothing goes deep
  for (const schema of Object.values(defs).reverse()) patternsOf(schema)
  patternsOf(enforced)
  return isFound
}
