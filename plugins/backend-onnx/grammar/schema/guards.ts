import type { SchemaDocument, SchemaLocation } from "./document.ts"
import { isObject, type JsonObject } from "./json-value.ts"
import { unreadPattern } from "./validator/linear-pattern.ts"

/**
 * What is checked on finished values, because the enforced schema can't say it: keywords at these
 * places of the document. A value is finished only if the complete validator accepts it there.
 */
export interface Guards {
  readonly document: SchemaDocument
  /** The guarded keywords by the path of the schema that holds them. Never empty. */
  readonly keywords: ReadonlyMap<string, ReadonlySet<string>>
}

export interface Subschema {
  readonly keyword: string
  readonly place: SchemaLocation
}

const single = [
  ...["additionalProperties", "unevaluatedProperties", "propertyNames"],
  ...["additionalItems", "unevaluatedItems", "contains"],
  ...["not", "if", "then", "else"],
]
const lists = ["allOf", "anyOf", "oneOf", "prefixItems"]
const maps = ["properties", "patternProperties", "dependentSchemas", "dependencies"]

/** Returns the schemas directly inside one, with the keyword that holds them, and its `$ref`. */
export const subschemas = (document: SchemaDocument, of: SchemaLocation): readonly Subschema[] => {
  const { schema } = of
  if (!isObject(schema)) return []
  const below = (keyword: string, names: readonly (string | number)[]): readonly Subschema[] =>
    names.map((name) => ({ keyword, place: document.at(of, keyword, name) }))
  const isTuple = Array.isArray(schema.items)
  return [
    ...document
      .references(of)
      .flatMap(({ keyword, target }) => (target ? [{ keyword, place: target }] : [])),
    ...[...single, ...(isTuple ? [] : ["items"])]
      .filter((keyword) => Object.hasOwn(schema, keyword))
      .map((keyword) => ({ keyword, place: document.at(of, keyword) })),
    ...[...lists, ...(isTuple ? ["items"] : [])].flatMap((keyword) =>
      Array.isArray(schema[keyword]) ? below(keyword, [...schema[keyword].keys()]) : [],
    ),
    ...maps.flatMap((keyword) => {
      const inside = schema[keyword]
      return isObject(inside) ? below(keyword, Object.keys(inside)) : []
    }),
  ]
}

/** Paths of schemas that can be judged with all that they lead to. */
const judgeable = new WeakMap<SchemaDocument, Set<string>>()

/**
 * Returns why the validator can't judge a keyword: a `$ref` to another document, or a pattern that
 * can't be read, somewhere inside it.
 */
export const unjudgeable = (
  document: SchemaDocument,
  of: SchemaLocation,
  keyword: string,
): string | undefined => {
  const own = isObject(of.schema) ? patternsIn(of.schema, [keyword]) : []
  const unread = own.map(unreadPattern).find((reason) => reason !== undefined)
  if (unread !== undefined) return `can't be kept: ${unread}`
  const inside = subschemas(document, of).filter((sub) => sub.keyword === keyword)
  return obstacleIn(
    document,
    inside.map(({ place }) => place),
  )
}

/** The same for everything that some schemas lead to. */
export const obstacleIn = (
  document: SchemaDocument,
  places: readonly SchemaLocation[],
): string | undefined => {
  const known = judgeable.get(document) ?? new Set<string>()
  judgeable.set(document, known)
  const waiting = [...places]
  const seen = new Set(waiting.map(({ path }) => path))
  for (let place = waiting.pop(); place; place = waiting.pop()) {
    const reason = isObject(place.schema) ? unreadable(document, place) : undefined
    if (reason !== undefined) return reason
    for (const sub of subschemas(document, place)) {
      if (seen.has(sub.place.path) || known.has(sub.place.path)) continue
      seen.add(sub.place.path)
      waiting.push(sub.place)
    }
  }
  for (const path of seen) known.add(path)
  return undefined
}

const unreadable = (document: SchemaDocument, place: SchemaLocation): string | undefined => {
  const missing = document.references(place).find(({ target }) => !target)
  if (missing) return `${JSON.stringify(missing.ref)} is not in this document`
  for (const one of patternsIn(place.schema as JsonObject, ["pattern", "patternProperties"])) {
    const reason = unreadPattern(one)
    if (reason !== undefined) return `a pattern inside can't be kept: ${reason}`
  }
  return undefined
}

const patternsIn = (schema: JsonObject, keywords: readonly string[]): readonly string[] =>
  keywords.flatMap((keyword) => {
    const value = schema[keyword]
    if (keyword === "pattern" && typeof value === "string") return [value]
    return keyword === "patternProperties" && isObject(value) ? Object.keys(value) : []
  })
