import type { Json } from "../../../../core/json.ts"
import type { SchemaLocation } from "./document.ts"
import { subschemas } from "./guards.ts"
import { isObject, type JsonObject } from "./json-value.ts"
import { anyPattern, areApart } from "./name-patterns.ts"
import { wholePattern } from "./pattern.ts"
import type { EnforcedSchema, Keywords, Reading } from "./reading.ts"

/** Keywords that apply a schema to the same value; of those that may not hold, the second. */
const certain = ["$ref", "$dynamicRef", "$recursiveRef", "allOf"]
const uncertain = ["anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"]

/** The properties that a schema and those applied to the same value evaluate. */
interface Evaluated {
  readonly names: ReadonlySet<string>
  readonly patterns: ReadonlySet<string>
  /** All others are evaluated, too: certainly, perhaps, or not. */
  readonly rest: "certain" | "perhaps" | "no"
  /** Whether each name and pattern is evaluated in all cases. */
  readonly isCertain: boolean
}

/** The maximum number of places that are walked: dynamic scopes multiply them. */
const mostPlaces = 2_000
const unknown: Evaluated = {
  names: new Set(),
  patterns: new Set(),
  rest: "perhaps",
  isCertain: false,
}

const evaluatedBy = (document: Reading["document"], root: SchemaLocation): Evaluated => {
  const names = new Set<string>()
  const patterns = new Set<string>()
  let rest: Evaluated["rest"] = "no"
  let isCertain = true
  const places = new Map([[document.keyOf(root), { place: root, holds: true }]])
  // the map grows while it is walked
  for (const { place, holds } of places.values()) {
    if (places.size > mostPlaces) return unknown
    const schema = isObject(place.schema) ? place.schema : {}
    const before = names.size + patterns.size
    for (const name of keysOf(schema.properties)) names.add(name)
    for (const pattern of keysOf(schema.patternProperties)) patterns.add(pattern)
    if (!holds && names.size + patterns.size > before) isCertain = false
    const isOwn = place === root
    if (Object.hasOwn(schema, "additionalProperties") || (!isOwn && leavesNothing(schema)))
      rest = holds ? "certain" : rest === "no" ? "perhaps" : rest
    for (const { keyword, place: inner } of subschemas(document, place)) {
      const isApplied = certain.includes(keyword) || uncertain.includes(keyword)
      const key = document.keyOf(inner)
      if (isApplied && !places.has(key))
        places.set(key, { place: inner, holds: holds && certain.includes(keyword) })
    }
  }
  return { names, patterns, rest, isCertain }
}

const keysOf = (value: Json): readonly string[] => (isObject(value) ? Object.keys(value) : [])

const leavesNothing = (schema: JsonObject): boolean =>
  Object.hasOwn(schema, "unevaluatedProperties")

/**
 * Reads `unevaluatedProperties` beside keywords that evaluate properties: names that none of them
 * evaluates satisfy it, which is all where each of them surely holds, and else checked in the end.
 */
export const readUnevaluated = (of: Keywords, reading: Reading): EnforcedSchema => {
  const keyword = "unevaluatedProperties"
  const { names, patterns, rest, isCertain } = evaluatedBy(reading.document, of.place)
  if (rest === "certain") {
    of.enforce(keyword, "nothing is left for it")
    return true
  }
  const whole = wholePatterns([...patterns], reading)
  if (rest === "no" && isCertain && whole) of.enforce(keyword)
  else of.guard(keyword)
  if (rest === "perhaps" || !whole) return true
  const all = (list: readonly string[]) => Object.fromEntries(list.map((name) => [name, true]))
  return {
    type: "object",
    ...(names.size > 0 && { properties: all([...names]) }),
    ...(whole.length > 0 && { patternProperties: all(whole) }),
    additionalProperties: of.read(keyword),
  }
}

/** The patterns as those who evaluate write them; undefined: they can't be written beside them. */
const wholePatterns = (
  patterns: readonly string[],
  { options }: Reading,
): readonly string[] | undefined => {
  if (patterns.length === 0) return []
  if (!options.isWritingPatterns || anyPattern(patterns) === undefined) return undefined
  const whole = patterns.map(wholePattern)
  return areApart(whole) ? whole : undefined
}
