import type { Json } from "../../../../core/json.ts"
import { acceptsValue } from "../schema/accepts.ts"
import { matchesPattern } from "../schema/check.ts"
import type { SchemaDocument, SchemaLocation } from "../schema/document.ts"
import { fewValues } from "../schema/few-values.ts"
import { type Guards, type Subschema, subschemas } from "../schema/guards.ts"
import { canonicalText, isNumber, isObject, type JsonObject } from "../schema/json-value.ts"
import type { Entry, Frame, Watch } from "./json-tracker.ts"

/** Keywords whose schemas always govern a value, or its items and properties. */
const unconditional = new Set([
  ...["$ref", "allOf", "properties", "patternProperties", "additionalProperties"],
  ...["items", "prefixItems", "additionalItems"],
])

interface FewValue {
  /** As JSON, one character per byte. */
  readonly text: string
  /** Equal for equal values. */
  readonly key: string
}

/** The schemas of a document that take part in checks on finished values. */
class GuardedSchemas {
  readonly guards: Guards
  /** Paths of schemas with a guard in themselves or anywhere below. */
  private readonly reaching: ReadonlySet<string>
  /** Paths of schemas that the enforced schema leaves out altogether. */
  private readonly unenforced: ReadonlySet<string>
  private readonly inside = new Map<string, readonly Subschema[]>()
  private readonly few = new Map<string, { readonly values: readonly FewValue[] | undefined }>()

  constructor(guards: Guards) {
    this.guards = guards
    const all = this.below([guards.document.root])
    this.reaching = this.above(all)
    const loose = [...all].flatMap(([path, place]) =>
      this.subschemasOf(place)
        .filter(({ keyword }) => unconditional.has(keyword))
        .filter(({ keyword }) => guards.keywords.get(path)?.has(keyword))
        .map((sub) => sub.place),
    )
    this.unenforced = new Set(this.below(loose).keys())
  }

  /** The values of a schema that has only a few. */
  fewAt(place: SchemaLocation): readonly FewValue[] | undefined {
    const known = this.few.get(place.path)
    if (known) return known.values
    const values = fewValues(this.guards.document, place)?.map((value) => ({
      text: Buffer.from(JSON.stringify(value)).toString("latin1"),
      key: canonicalText(value),
    }))
    this.few.set(place.path, { values })
    return values
  }

  /** Whether values are to be checked at the place, or below it. */
  matters({ path }: SchemaLocation): boolean {
    return this.reaching.has(path) || this.unenforced.has(path)
  }

  /**
   * Whether values are judged at the place itself: it holds a guarded keyword, or one lies below a
   * keyword that may or may not apply.
   */
  judges(place: SchemaLocation): boolean {
    return (
      this.unenforced.has(place.path) ||
      this.guards.keywords.has(place.path) ||
      this.subschemasOf(place).some(
        (sub) => !unconditional.has(sub.keyword) && this.reaching.has(sub.place.path),
      )
    )
  }

  private subschemasOf(place: SchemaLocation): readonly Subschema[] {
    const known = this.inside.get(place.path)
    if (known) return known
    const fresh = subschemas(this.guards.document, place)
    this.inside.set(place.path, fresh)
    return fresh
  }

  private below(places: readonly SchemaLocation[]): ReadonlyMap<string, SchemaLocation> {
    const found = new Map(places.map((place) => [place.path, place]))
    // the map grows while it is walked
    for (const place of found.values())
      for (const sub of this.subschemasOf(place))
        if (!found.has(sub.place.path)) found.set(sub.place.path, sub.place)
    return found
  }

  /** Returns the paths of all schemas from which a guarded one is reached. */
  private above(all: ReadonlyMap<string, SchemaLocation>): ReadonlySet<string> {
    const holders = new Map<string, string[]>()
    for (const [path, place] of all)
      for (const sub of this.subschemasOf(place)) {
        const known = holders.get(sub.place.path)
        if (known) known.push(path)
        else holders.set(sub.place.path, [path])
      }
    const found = new Set(this.guards.keywords.keys())
    for (const path of found) for (const holder of holders.get(path) ?? []) found.add(holder)
    return found
  }
}

const mostKept = 1_000

/** The watch of a whole document. */
export const watchOf = (guards: Guards): Watch => {
  const schemas = new GuardedSchemas(guards)
  return new SchemaWatch(schemas, governing(schemas, [guards.document.root]), new Map(), true)
}

/** Returns the schemas with those that they refer to, or are a conjunction of. */
const governing = (
  schemas: GuardedSchemas,
  places: readonly SchemaLocation[],
): readonly SchemaLocation[] => {
  const { document } = schemas.guards
  const found = new Map(places.map((place) => [place.path, place]))
  for (const place of found.values())
    for (const { keyword, place: other } of subschemas(document, place))
      if ((keyword === "$ref" || keyword === "allOf") && !found.has(other.path))
        found.set(other.path, other)
  return [...found.values()].filter((place) => schemas.matters(place))
}

const checkedParts = ["uniqueItems", "contains", "maxProperties"]

class SchemaWatch implements Watch {
  readonly isGuarded: boolean
  readonly checksParts: boolean
  private readonly schemas: GuardedSchemas
  private readonly places: readonly SchemaLocation[]
  private readonly judging: readonly SchemaLocation[]
  /** Shared by all watches of a document: by the paths of their schemas. */
  private readonly known: Map<string, SchemaWatch>
  private readonly children = new Map<string | number, SchemaWatch | undefined>()

  constructor(
    schemas: GuardedSchemas,
    places: readonly SchemaLocation[],
    known: Map<string, SchemaWatch>,
    isRoot = false,
  ) {
    this.schemas = schemas
    this.places = places
    this.known = known
    const { root } = schemas.guards.document
    this.checksParts = places.some(({ path }) =>
      checkedParts.some((keyword) => schemas.guards.keywords.get(path)?.has(keyword)),
    )
    const judging = places.filter((place) => schemas.judges(place))
    this.isGuarded = judging.length > 0
    this.judging = isRoot ? [root] : judging
  }

  child(key: string | number): SchemaWatch | undefined {
    if (this.children.has(key)) return this.children.get(key)
    const places = governing(
      this.schemas,
      this.places.flatMap((place) => this.below(place, key)),
    )
    const name = places.map(({ path }) => path).join(" ")
    const watch =
      places.length === 0
        ? undefined
        : (this.known.get(name) ?? new SchemaWatch(this.schemas, places, this.known))
    if (watch && this.known.size < mostKept) this.known.set(name, watch)
    if (this.children.size < mostKept) this.children.set(key, watch)
    return watch
  }

  accepts(value: Json): boolean {
    const { document } = this.schemas.guards
    return this.judging.every((place) => acceptsValue(document, place, value))
  }

  allows(frame: Frame, more: boolean): boolean {
    return this.places.every(
      (place) =>
        !this.schemas.guards.keywords.has(place.path) ||
        (frame.isArray
          ? this.allowsItems(place, frame)
          : this.allowsProperties(place, frame, more)),
    )
  }

  allowsName(name: string): boolean {
    const { document, keywords } = this.schemas.guards
    return this.places.every(
      (place) =>
        (!keywords.get(place.path)?.has("propertyNames") ||
          acceptsValue(document, document.at(place, "propertyNames"), name)) &&
        this.below(place, name).every(({ schema }) => schema !== false),
    )
  }

  choices(frame: Frame): readonly string[] | undefined {
    if (!frame.isArray || !this.isSet(frame)) return undefined
    const items = this.places.flatMap((place) => this.below(place, frame.size))
    const few = items.map((item) => this.schemas.fewAt(item)).find((values) => values !== undefined)
    if (few === undefined) return undefined
    const written = new Set(keysIn(frame))
    return few.filter(({ key }) => !written.has(key)).map(({ text }) => text)
  }

  private isSet(frame: Frame): boolean {
    const { keywords } = this.schemas.guards
    return frame.isArray && this.places.some(({ path }) => keywords.get(path)?.has("uniqueItems"))
  }

  /** The schemas of an item or property that one schema names. */
  private below(place: SchemaLocation, key: string | number): readonly SchemaLocation[] {
    const { document } = this.schemas.guards
    const { schema } = place
    if (!isObject(schema)) return []
    if (typeof key === "number") return itemAt(document, place, schema, key)
    const { properties, patternProperties } = schema
    const rules = isObject(patternProperties) ? Object.keys(patternProperties) : []
    const named = [
      ...(isObject(properties) && Object.hasOwn(properties, key)
        ? [document.at(place, "properties", key)]
        : []),
      ...rules
        .filter((rule) => matchesPattern(rule, key) !== false)
        .map((rule) => document.at(place, "patternProperties", rule)),
    ]
    if (named.length > 0) return named
    return Object.hasOwn(schema, "additionalProperties")
      ? [document.at(place, "additionalProperties")]
      : []
  }

  private allowsItems(place: SchemaLocation, frame: Frame): boolean {
    const { document, keywords } = this.schemas.guards
    const guarded = keywords.get(place.path)!
    const { maxContains } = place.schema as JsonObject
    if (guarded.has("uniqueItems") && isRepeated(frame)) return false
    if (!guarded.has("contains") || !isNumber(maxContains)) return true
    const wanted = document.at(place, "contains")
    let count = 0
    for (let entry = frame.last; entry; entry = entry.before)
      if (acceptsValue(document, wanted, entry.value)) count++
    return count <= maxContains
  }

  private allowsProperties(place: SchemaLocation, frame: Frame, more: boolean): boolean {
    const { maxProperties } = place.schema as JsonObject
    if (!this.schemas.guards.keywords.get(place.path)!.has("maxProperties")) return true
    if (!isNumber(maxProperties) || frame.size + (more ? 1 : 0) <= maxProperties) return true
    const names = new Set<string>()
    for (let entry = frame.last; entry; entry = entry.before) names.add(entry.name)
    return names.size + (more ? 1 : 0) <= maxProperties
  }
}

const itemAt = (
  document: SchemaDocument,
  place: SchemaLocation,
  schema: JsonObject,
  index: number,
): readonly SchemaLocation[] => {
  const [tuple, rest] = Array.isArray(schema.items)
    ? ["items", "additionalItems"]
    : ["prefixItems", "items"]
  const fixed = schema[tuple]
  if (Array.isArray(fixed) && index < fixed.length) return [document.at(place, tuple, index)]
  return Object.hasOwn(schema, rest) ? [document.at(place, rest)] : []
}

const keyOf = (entry: Entry): string => {
  entry.key ??= canonicalText(entry.value)
  return entry.key
}

const keysIn = (frame: Frame): readonly string[] => {
  const keys: string[] = []
  for (let entry = frame.last; entry; entry = entry.before) keys.push(keyOf(entry))
  return keys
}

/** Whether the last item is equal to an earlier one. */
const isRepeated = ({ last }: Frame): boolean => {
  if (!last) return false
  const key = keyOf(last)
  for (let entry = last.before; entry; entry = entry.before) if (keyOf(entry) === key) return true
  return false
}
