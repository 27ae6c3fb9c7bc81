import type { Json } from "../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "../schema/document.ts"
import type { Guards } from "../schema/guards.ts"
import {
  canonicalText,
  isNumber,
  isObject,
  isTexts,
  type JsonObject,
} from "../schema/json-value.ts"
import { matchesPattern } from "../schema/validator/check.ts"
import { GuardedSchemas, sameValue } from "./guarded-schemas.ts"
import type { Entry, Frame, Watch } from "./json-tracker.ts"

const mostKept = 1_000
/** The maximum number of schemas of one value where `isBeyond` has all of them judge it. */
const mostGoverning = 200

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
  const found = new Map(places.map((place) => [document.keyOf(place), place]))
  for (const place of found.values()) {
    if (schemas.isBeyond && found.size >= mostGoverning) break
    for (const { keyword, place: other } of schemas.subschemasOf(place)) {
      const key = document.keyOf(other)
      if (sameValue.has(keyword) && !found.has(key)) found.set(key, other)
    }
  }
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
  private readonly choicesOf = new WeakMap<Frame, readonly string[]>()
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
    this.checksParts = places.some((place) =>
      checkedParts.some((keyword) => schemas.guardedIn(place).has(keyword)),
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
    const name = places.map((place) => this.schemas.guards.document.keyOf(place)).join(" ")
    const watch =
      places.length === 0
        ? undefined
        : (this.known.get(name) ?? new SchemaWatch(this.schemas, places, this.known))
    if (watch && this.known.size < mostKept) this.known.set(name, watch)
    if (this.children.size < mostKept) this.children.set(key, watch)
    return watch
  }

  renew(): void {
    this.schemas.renew()
  }

  accepts(value: Json): boolean {
    return this.judging.every((place) => this.schemas.accepts(place, value))
  }

  allows(frame: Frame, more: boolean): boolean {
    return this.places.every(
      (place) =>
        this.schemas.guardedIn(place).size === 0 ||
        (frame.isArray
          ? this.allowsItems(place, frame)
          : this.allowsProperties(place, frame, more)),
    )
  }

  allowsName(frame: Frame, name: string): boolean {
    const { document } = this.schemas.guards
    // one name is one property, however often it is written
    if (namesUpTo(frame.last).has(name)) return false
    return this.places.every(
      (place) =>
        (!this.schemas.guardedIn(place).has("propertyNames") ||
          this.schemas.accepts(document.at(place, "propertyNames"), name)) &&
        this.below(place, name).every(({ schema }) => schema !== false),
    )
  }

  choices(frame: Frame): readonly string[] | undefined {
    if (!frame.isArray || !this.isSet(frame)) return undefined
    const known = this.choicesOf.get(frame)
    if (known) return known
    const items = this.places.flatMap((place) => this.below(place, frame.size))
    const few = items.map((item) => this.schemas.fewAt(item)).find((values) => values !== undefined)
    if (few === undefined) return undefined
    const written = keysUpTo(frame.last)
    const choices = few.filter(({ key }) => !written.has(key)).map(({ text }) => text)
    this.choicesOf.set(frame, choices)
    return choices
  }

  private isSet(frame: Frame): boolean {
    return (
      frame.isArray && this.places.some((place) => this.schemas.guardedIn(place).has("uniqueItems"))
    )
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
    const { document } = this.schemas.guards
    const guarded = this.schemas.guardedIn(place)
    const { minContains = 1, maxContains, maxItems } = place.schema as JsonObject
    if (guarded.has("uniqueItems") && isRepeated(frame)) return false
    if (!guarded.has("contains") || (!isNumber(maxContains) && !isNumber(maxItems))) return true
    const wanted = document.at(place, "contains")
    let count = 0
    for (let entry = frame.last; entry; entry = entry.before)
      if (this.schemas.accepts(wanted, entry.value)) count++
    const room = isNumber(maxItems) ? maxItems - frame.size : Number.POSITIVE_INFINITY
    return (!isNumber(maxContains) || count <= maxContains) && Number(minContains) - count <= room
  }

  private allowsProperties(place: SchemaLocation, frame: Frame, more: boolean): boolean {
    const { maxProperties, required } = place.schema as JsonObject
    if (!this.schemas.guardedIn(place).has("maxProperties")) return true
    if (!isNumber(maxProperties)) return true
    const written = namesUpTo(frame.last?.before)
    const missing = (isTexts(required) ? required : []).filter(
      (name) => name !== frame.last?.name && !written.has(name),
    ).length
    return frame.size + Math.max(more ? 1 : 0, missing) <= maxProperties
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

/** Something of all entries up to one, kept for the next questions. */
const collected = (
  kept: WeakMap<Entry, ReadonlySet<string>>,
  of: (entry: Entry) => string,
): ((last: Entry | undefined) => ReadonlySet<string>) => {
  return (last) => {
    const known = last && kept.get(last)
    if (known) return known
    const fresh = new Set<string>()
    for (let entry = last; entry; entry = entry.before) fresh.add(of(entry))
    if (last) kept.set(last, fresh)
    return fresh
  }
}

const namesUpTo = collected(new WeakMap(), ({ name }) => name)
/** The items as texts that are equal for equal items. */
const keysUpTo = collected(new WeakMap(), ({ value }) => canonicalText(value))

/** Whether the last item is equal to an earlier one. */
const isRepeated = ({ last }: Frame): boolean =>
  last !== undefined && keysUpTo(last.before).has(canonicalText(last.value))
