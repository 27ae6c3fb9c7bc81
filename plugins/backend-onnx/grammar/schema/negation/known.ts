import type { Json } from "../../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isNumber, isObject, isTexts, type JsonObject, typeOfValue } from "../json-value.ts"
import { matchesPattern } from "../validator/check.ts"

/** The types of JSON, with numbers split in two: whole ones, and those with a fraction. */
export const kinds = [
  "null",
  "boolean",
  "integer",
  "fraction",
  "string",
  "array",
  "object",
] as const
export type Kind = (typeof kinds)[number]
export type Kinds = ReadonlySet<Kind>

export const everyKind: Kinds = new Set(kinds)
/** The maximum number of schemas of which one value's kind is concluded. */
const mostParts = 200
const deepest = 50

export const kindsOfType = (type: Json): Kinds => {
  const types = typeof type === "string" ? [type] : isTexts(type) ? type : kinds
  return new Set(
    kinds.filter(
      (kind) =>
        types.includes(kind) ||
        (types.includes("number") && (kind === "integer" || kind === "fraction")),
    ),
  )
}

export const kindOfValue = (value: Json): Kind => {
  const type = typeOfValue(value)
  if (type !== "number") return type
  return Number.isInteger(value) ? "integer" : "fraction"
}

export const inBoth = <A>(a: ReadonlySet<A>, b: ReadonlySet<A>): ReadonlySet<A> =>
  new Set([...a].filter((one) => b.has(one)))

const least = (values: readonly number[]): number =>
  values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)

/**
 * What is known of a value: schemas that hold for it. A negation leaves out what can't be, which
 * makes it smaller, and exact more often.
 */
export class Known {
  readonly kinds: Kinds
  private readonly document: SchemaDocument
  private readonly properties = new Map<string, Known>()
  /** Every schema that holds, with what it refers to and all that it is made of. */
  private readonly places: readonly SchemaLocation[]

  constructor(document: SchemaDocument, places: readonly SchemaLocation[]) {
    this.document = document
    this.places = partsOf(document, places)
    this.kinds = places.some(({ schema }) => schema === false)
      ? new Set()
      : this.places.map((place) => kindsAt(document, place)).reduce(inBoth, everyKind)
  }

  and(place: SchemaLocation): Known {
    return new Known(this.document, [...this.places, place])
  }

  /** The only values there can be, if they are listed. */
  get values(): readonly Json[] | undefined {
    return this.places.map(({ schema }) => valuesOf(schema)).find((values) => values !== undefined)
  }

  /** The only names of properties there can be, if there are such. */
  get names(): ReadonlySet<string> | undefined {
    const closed = this.places.map(({ schema }) => namesOf(schema)).filter((names) => names)
    return closed.length === 0 ? undefined : closed.map((names) => names!).reduce(inBoth)
  }

  get mostItems(): number {
    return least(this.places.map(({ schema }) => mostItemsOf(schema)))
  }

  property(name: string): Known {
    const known =
      this.properties.get(name) ??
      new Known(
        this.document,
        this.places.map((place) => propertyOf(this.document, place, name)),
      )
    this.properties.set(name, known)
    return known
  }

  item(index: number): Known {
    return new Known(
      this.document,
      this.places.map((place) => itemOf(this.document, place, index)),
    )
  }
}

/** A schema with what it refers to and all that it is made of. */
const partsOf = (
  document: SchemaDocument,
  whole: readonly SchemaLocation[],
): readonly SchemaLocation[] => {
  const found = new Map<string, SchemaLocation>()
  const waiting = [...whole].reverse()
  for (let place = waiting.pop(); place && found.size < mostParts; place = waiting.pop()) {
    const key = document.keyOf(place)
    if (!isObject(place.schema) || found.has(key)) continue
    found.set(key, place)
    const { allOf } = place.schema
    if (Array.isArray(allOf))
      for (const i of [...allOf.keys()].reverse()) waiting.push(document.at(place, "allOf", i))
    for (const { target } of document.references(place)) if (target) waiting.push(target)
  }
  return [...found.values()]
}

const knownKinds = new WeakMap<SchemaDocument, Map<string, Kinds>>()

/** Nothing is known of what leads back to itself, or is nested deep. */
const kindsAt = (document: SchemaDocument, place: SchemaLocation, depth = 0): Kinds => {
  const { schema } = place
  if (schema === false) return new Set()
  if (!isObject(schema) || depth > deepest) return everyKind
  const known = knownKinds.get(document) ?? new Map<string, Kinds>()
  knownKinds.set(document, known)
  const key = document.keyOf(place)
  const found = known.get(key)
  if (found) return found
  known.set(key, everyKind)
  const values = valuesOf(schema)
  const own = values ? new Set(values.map(kindOfValue)) : kindsOfType(schema.type)
  const options = ["anyOf", "oneOf"].flatMap((keyword) => {
    const list = schema[keyword]
    if (!Array.isArray(list)) return []
    const each = list.map((option, i) =>
      option === false
        ? new Set<Kind>()
        : kindsOfAll(document, document.at(place, keyword, i), depth + 1),
    )
    return [new Set(each.flatMap((some) => [...some]))]
  })
  const kinds = options.reduce(inBoth, own)
  known.set(key, kinds)
  return kinds
}

const kindsOfAll = (document: SchemaDocument, place: SchemaLocation, depth: number): Kinds =>
  partsOf(document, [place])
    .map((part) => kindsAt(document, part, depth))
    .reduce(inBoth, everyKind)

const valuesOf = (schema: Json): readonly Json[] | undefined => {
  if (!isObject(schema)) return undefined
  if (Object.hasOwn(schema, "const")) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

const namesOf = (schema: Json): ReadonlySet<string> | undefined => {
  const { additionalProperties, patternProperties, properties } = schema as JsonObject
  if (additionalProperties !== false) return undefined
  if (isObject(patternProperties) && Object.keys(patternProperties).length > 0) return undefined
  return new Set(
    Object.entries(isObject(properties) ? properties : {})
      .filter(([, rule]) => rule !== false)
      .map(([name]) => name),
  )
}

const mostItemsOf = (schema: Json): number => {
  const { items, prefixItems, additionalItems, maxItems } = schema as JsonObject
  const fixed = Array.isArray(items) ? items : Array.isArray(prefixItems) ? prefixItems : []
  const isClosed = (Array.isArray(items) ? additionalItems : items) === false
  return least([...(isNumber(maxItems) ? [maxItems] : []), ...(isClosed ? [fixed.length] : [])])
}

const itemOf = (document: SchemaDocument, place: SchemaLocation, index: number): SchemaLocation => {
  const { items, prefixItems } = place.schema as JsonObject
  if (Array.isArray(items))
    return index < items.length
      ? document.at(place, "items", index)
      : document.at(place, "additionalItems")
  return Array.isArray(prefixItems) && index < prefixItems.length
    ? document.at(place, "prefixItems", index)
    : document.at(place, "items")
}

export const propertyOf = (
  document: SchemaDocument,
  place: SchemaLocation,
  name: string,
): SchemaLocation => {
  const { properties, patternProperties } = place.schema as JsonObject
  if (isObject(properties) && Object.hasOwn(properties, name))
    return document.at(place, "properties", name)
  const rules = isObject(patternProperties) ? Object.keys(patternProperties) : []
  const matching = rules.map((rule) => matchesPattern(rule, name))
  // nothing is known where it is not known which rule holds
  if (matching.includes(undefined)) return { ...place, schema: true }
  const rule = rules[matching.indexOf(true)]
  return rule === undefined
    ? document.at(place, "additionalProperties")
    : document.at(place, "patternProperties", rule)
}
