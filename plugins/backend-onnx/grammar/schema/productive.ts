import type { Json } from "../../../../core/json.ts"
import { type Defs, nameIn, namesOfRefs, settle } from "./fixed-point.ts"
import { isObject } from "./json-value.ts"
import { allOf, anyOf, type EnforcedSchema } from "./reading.ts"

/**
 * Removes branches that no finite document satisfies, such as a `$ref` that only leads to itself,
 * in which an answer would get stuck. False: nothing is left.
 */
export const withoutDeadEnds = (root: EnforcedSchema, defs: Defs): EnforcedSchema => {
  const productive = productiveOf(defs)
  const pruned = prune(root, productive)
  if (typeof pruned === "boolean") return pruned
  const used = new Map<string, EnforcedSchema>()
  const waiting = [...namesOfRefs(pruned)]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name)) continue
    used.set(name, prune(defs.get(name)!, productive))
    waiting.push(...namesOfRefs(used.get(name)!))
  }
  const inOrder = [...defs.keys()].filter((name) => used.has(name))
  return inOrder.length > 0
    ? { ...pruned, $defs: Object.fromEntries(inOrder.map((name) => [name, used.get(name)!])) }
    : pruned
}

/**
 * Returns the names of the definitions that some finite document satisfies: the least fixed point.
 */
const productiveOf = (defs: Defs): ReadonlySet<string> => {
  const found = new Set<string>()
  settle(defs, (name, schema) => {
    if (found.has(name) || prune(schema, found) === false) return false
    found.add(name)
    return true
  })
  return found
}

const prune = (schema: EnforcedSchema, productive: ReadonlySet<string>): EnforcedSchema => {
  if (typeof schema === "boolean") return schema
  const again = (part: Json) => prune(part as EnforcedSchema, productive)
  if (schema.$ref !== undefined) return productive.has(nameIn(schema.$ref)) ? schema : false
  if (Array.isArray(schema.allOf)) return allOf(schema.allOf.map(again))
  if (Array.isArray(schema.anyOf)) return anyOf(schema.anyOf.map(again))
  if (Array.isArray(schema.enum)) return schema.enum.length > 0 ? schema : false
  if (schema.type === "array") return pruneArray(schema, again)
  return schema.type === "object" ? pruneObject(schema, again) : schema
}

type Parts = Readonly<Record<string, Json>>

const pruneArray = (schema: Parts, again: (part: Json) => EnforcedSchema): EnforcedSchema => {
  const items = schema.items === undefined ? true : again(schema.items)
  const fixed = (Array.isArray(schema.prefixItems) ? schema.prefixItems : []).map(again)
  const first = fixed.indexOf(false)
  const possible = first >= 0 ? first : items === false ? fixed.length : Number.POSITIVE_INFINITY
  if (Number(schema.minItems ?? 0) > possible) return false
  return {
    ...schema,
    ...(fixed.length > 0 && { prefixItems: fixed }),
    ...(items !== true && { items }),
  }
}

const pruneObject = (schema: Parts, again: (part: Json) => EnforcedSchema): EnforcedSchema => {
  const each = (schemas: Json) =>
    Object.fromEntries(
      Object.entries(isObject(schemas) ? schemas : {}).map(([name, part]) => [name, again(part)]),
    )
  const properties = each(schema.properties)
  const patterns = each(schema.patternProperties)
  const rest = schema.additionalProperties === undefined ? true : again(schema.additionalProperties)
  const required = (schema.required ?? []) as readonly string[]
  const isImpossible = (name: string) =>
    Object.hasOwn(properties, name)
      ? properties[name] === false
      : rest === false && Object.keys(patterns).length === 0
  if (required.some(isImpossible)) return false
  return {
    ...schema,
    ...(schema.properties !== undefined && { properties }),
    ...(schema.patternProperties !== undefined && { patternProperties: patterns }),
    ...(rest !== true && { additionalProperties: rest }),
  }
}
