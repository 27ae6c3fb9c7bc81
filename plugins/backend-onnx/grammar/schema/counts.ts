import type { Json } from "../../../../core/json.ts"
import { isObject } from "./json-value.ts"
import { allOf, anyOf, type EnforcedSchema, type Keywords } from "./reading.ts"

type Parts = Readonly<Record<string, Json>>

const countKeywords = ["minProperties", "maxProperties"] as const

const isCounted = (schema: Parts): boolean =>
  countKeywords.some((keyword) => schema[keyword] !== undefined)

/** What is in a schema at any depth, as what is merged is merged to the bottom. */
interface Found {
  readonly counted: readonly Parts[]
  readonly optional: ReadonlySet<string>
}

/** Beyond this, counts are left to guards without a closer look. */
const mostCompared = 1_000_000

const nothing: Found = { counted: [], optional: new Set() }

const together = (all: readonly Found[]): Found => ({
  counted: all.flatMap(({ counted }) => counted),
  optional: new Set(all.flatMap(({ optional }) => [...optional])),
})

/**
 * Whether a schema whose properties are counted may be merged with one that declares optional ones:
 * llguidance counts only where all declared properties are required.
 */
export const losesCounts = (enforced: EnforcedSchema): boolean => {
  if (!countKeywords.some((keyword) => JSON.stringify(enforced).includes(`"${keyword}"`)))
    return false
  const defs = isObject(enforced) && isObject(enforced.$defs) ? enforced.$defs : {}
  const known = new Map<Json, Found>()
  let isLost = false
  const foundIn = (schema: Json): Found => {
    if (!isObject(schema)) return nothing
    const found = known.get(schema)
    if (found) return found
    known.set(schema, nothing)
    const fresh = lookInto(schema)
    known.set(schema, fresh)
    return fresh
  }
  const lookInto = (schema: Parts): Found => {
    const each = (list: Json) => Object.values((list ?? []) as Json[]).map(foundIn)
    if (typeof schema.$ref === "string") return foundIn(defs[schema.$ref.slice("#/$defs/".length)])
    if (schema.anyOf) return together(each(schema.anyOf))
    if (!schema.allOf)
      return together([
        ownIn(schema),
        ...[schema.properties, schema.patternProperties, schema.prefixItems].flatMap(each),
        ...[schema.items, schema.additionalProperties].map(foundIn),
      ])
    const parts = each(schema.allOf)
    const whole = together(parts)
    isLost ||=
      parts.length * whole.counted.length * whole.optional.size > mostCompared ||
      parts.some((part, i) =>
        part.counted.some((one) => parts.some((other, j) => j !== i && adds(one, other))),
      )
    return whole
  }
  // a definition is found before those that it refers to: in reverse, nothing goes deep
  for (const schema of Object.values(defs).reverse()) foundIn(schema)
  foundIn(enforced)
  return isLost
}

const ownIn = (schema: Parts): Found => {
  const required = (schema.required ?? []) as readonly Json[]
  return {
    counted: isCounted(schema) ? [schema] : [],
    optional: new Set(
      Object.entries(isObject(schema.properties) ? schema.properties : {})
        .filter(([name, rule]) => rule !== false && !required.includes(name))
        .map(([name]) => name),
    ),
  }
}

/** Whether an optional property is declared that the counted schema does not know. */
const adds = ({ properties, required }: Parts, { optional }: Found): boolean =>
  [...optional].some(
    (name) =>
      !(isObject(properties) && Object.hasOwn(properties, name)) &&
      !((required ?? []) as readonly Json[]).includes(name),
  )

/** Leaves what is counted to guards. */
export const uncounted = (of: Keywords, enforced: EnforcedSchema): EnforcedSchema => {
  const without = (schema: EnforcedSchema): EnforcedSchema => {
    if (typeof schema === "boolean") return schema
    const each = (list: Json) => (list as readonly EnforcedSchema[]).map(without)
    if (schema.allOf) return allOf(each(schema.allOf))
    if (schema.anyOf) return anyOf(each(schema.anyOf))
    if (!isCounted(schema)) return schema
    for (const keyword of countKeywords) if (of.has(keyword)) of.guard(keyword)
    const { minProperties, maxProperties, ...rest } = schema
    return rest
  }
  return without(enforced)
}
