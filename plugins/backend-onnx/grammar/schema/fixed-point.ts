import type { Json } from "../../../../core/json.ts"
import { isObject } from "./json-value.ts"
import type { EnforcedSchema } from "./reading.ts"

/** The definitions of an enforced schema, by their names. */
export type Defs = ReadonlyMap<string, EnforcedSchema>

export const nameIn = (ref: Json): string => String(ref).slice("#/$defs/".length)

/** Returns the names of the definitions that a schema refers to. */
export const namesOfRefs = (schema: EnforcedSchema): ReadonlySet<string> => {
  const found = new Set<string>()
  const look = (part: Json): void => {
    if (!isObject(part)) return
    if (typeof part.$ref === "string") found.add(nameIn(part.$ref))
    const lists = [part.allOf, part.anyOf, part.prefixItems]
    for (const inside of [...lists, part.properties, part.patternProperties])
      for (const one of Object.values((inside ?? {}) as Json[])) look(one)
    for (const one of [part.items, part.additionalProperties]) look(one)
  }
  look(schema)
  return found
}

const dependentsOf = (defs: Defs): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>()
  for (const [name, schema] of defs)
    for (const used of namesOfRefs(schema)) {
      const known = found.get(used)
      if (known) known.push(name)
      else found.set(used, [name])
    }
  return found
}

/**
 * Computes a fixed point over definitions: `improve` is called for each, and again when one that it
 * refers to has been improved; it returns whether it found something new. Returns false where that
 * takes more than `most` calls for each definition on average.
 */
export const settle = (
  defs: Defs,
  improve: (name: string, schema: EnforcedSchema) => boolean,
  most = Number.POSITIVE_INFINITY,
): boolean => {
  const dependents = dependentsOf(defs)
  // the last first: a definition stands before those that it refers to
  const waiting = [...defs.keys()]
  const isWaiting = new Set(waiting)
  let calls = 0
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    isWaiting.delete(name)
    if (++calls > most * defs.size) return false
    if (!improve(name, defs.get(name)!)) continue
    for (const dependent of dependents.get(name) ?? []) {
      if (isWaiting.has(dependent)) continue
      isWaiting.add(dependent)
      waiting.push(dependent)
    }
  }
  return true
}
