import type { Json } from "../../../../core/json.ts"
import { urlOf } from "../../../../core/url.ts"
import { isObject, type JsonObject, ownValue } from "./json-value.ts"
import { metaSchema } from "./meta-schemas.ts"
import { child, namesIn } from "./pointer.ts"

/** Dynamic anchors of the resources that lead to a schema: name -> path of the outermost one. */
export type DynamicScope = ReadonlyMap<string, string>

/** A schema with its location in the document. */
export interface SchemaLocation {
  /** Without the keywords beside a `$ref` in drafts that ignore them. */
  readonly schema: Json
  /** A JSON pointer; inside another document after that document's name. */
  readonly path: string
  /** Path of its schema resource: the nearest enclosing schema with an `$id`. */
  readonly base: string
  /** Absent where no schema of the document has a dynamic anchor. */
  readonly scope?: DynamicScope
}

export interface Reference {
  readonly keyword: string
  readonly ref: string
  readonly target: SchemaLocation | undefined
}

export type Draft = 4 | 6 | 7 | 2019 | 2020

const asAddress = "rakit:/"
const references = ["$ref", "$dynamicRef", "$recursiveRef"] as const
/** The name of `$recursiveAnchor` among dynamic anchors. */
const recursive = "$recursiveAnchor"

/** Keywords whose value is a schema, a list of schemas or an object of schemas. */
const holdSchema = new Set([
  ...[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
  ],
  ...["not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"],
  ...["allOf", "anyOf", "oneOf", "prefixItems"],
])
const holdSchemas = new Set([
  ...["$defs", "definitions", "dependencies", "dependentSchemas"],
  ...["patternProperties", "properties"],
])

const resolved = (uri: string, base: string): string | undefined => urlOf(uri, base)?.href

const draftOf = (schema: JsonObject): Draft | undefined => {
  const named = ownValue(schema, "$schema")
  if (typeof named !== "string") return undefined
  const old = /draft-0([3467])/.exec(named)?.[1]
  if (old !== undefined) return old === "3" ? 4 : (Number(old) as Draft)
  return named.includes("2019-09") ? 2019 : 2020
}

/** Before draft 2019-09 keywords beside a `$ref` are ignored, including `$id`. */
const isOnlyReference = (schema: Json, draft: Draft): schema is JsonObject =>
  draft <= 7 && isObject(schema) && typeof ownValue(schema, "$ref") === "string"

const idOf = (schema: JsonObject, draft: Draft): string | undefined => {
  if (isOnlyReference(schema, draft)) return undefined
  const id = ownValue(schema, "$id") ?? ownValue(schema, "id")
  return typeof id === "string" ? id : undefined
}

/** A schema document, in which `$ref` is resolved. */
export class SchemaDocument {
  readonly root: SchemaLocation
  /** The document itself under "", and the meta-schemas that it refers to under their names. */
  private readonly documents = new Map<string, Json>()
  /** Paths by the address of a resource or an anchor. */
  private readonly byAddress = new Map<string, string>()
  private readonly addressOf = new Map<string, string>()
  /** Resources by the path at which they begin. */
  private readonly draftAt = new Map<string, Draft>()
  private readonly dynamicAnchors = new Map<string, Map<string, string>>()

  private readonly resolve: Readonly<
    Record<
      (typeof references)[number],
      (ref: string, from: SchemaLocation) => SchemaLocation | undefined
    >
  > = {
    $ref: (ref, from) => this.follow(ref, from),
    $dynamicRef: (ref, from) => this.followDynamic(ref, from),
    $recursiveRef: (_, from) => this.followRecursive(from),
  }

  constructor(schema: Json) {
    this.add("", schema, asAddress)
    this.root = this.entered(this.place(""), undefined)
  }

  private add(name: string, schema: Json, address: string): void {
    this.documents.set(name, schema)
    this.addressOf.set(name, address)
    this.draftAt.set(name, (isObject(schema) ? draftOf(schema) : undefined) ?? 2020)
    this.index(schema, name, name)
    this.name(address, name)
  }

  private index(schema: Json, path: string, outer: string): void {
    if (!isObject(schema)) return
    const base = this.enter(schema, path, outer)
    const address = this.addressOf.get(base)!
    const anchors = ["$anchor", "$dynamicAnchor"].map((keyword) => ownValue(schema, keyword))
    for (const anchor of anchors)
      if (typeof anchor === "string") this.name(`${address}#${anchor}`, path)
    if (typeof anchors[1] === "string") this.bind(base, anchors[1], path)
    if (path === base && ownValue(schema, recursive) === true) this.bind(base, recursive, path)
    for (const [keyword, value] of Object.entries(schema)) {
      const inside = child(path, keyword)
      if (holdSchemas.has(keyword)) this.indexEach(value, inside, base)
      else if (!holdSchema.has(keyword)) continue
      else if (Array.isArray(value)) this.indexEach(value, inside, base)
      else this.index(value, inside, base)
    }
  }

  private indexEach(schemas: Json, path: string, base: string): void {
    if (typeof schemas !== "object" || schemas === null) return
    for (const [name, schema] of Object.entries(schemas))
      this.index(schema as Json, child(path, name), base)
  }

  /** Registers a schema's `$id`. Returns the path of its resource. */
  private enter(schema: JsonObject, path: string, outer: string): string {
    const draft = draftOf(schema) ?? this.draftAt.get(outer)!
    const id = idOf(schema, draft)
    if (id === undefined) return outer
    const base = this.addressOf.get(outer)!
    if (id.startsWith("#")) {
      this.name(base + id, path)
      return outer
    }
    const address = resolved(id, base)?.replace(/#$/, "")
    if (address === undefined) return outer
    this.name(address, path)
    this.addressOf.set(path, address)
    this.draftAt.set(path, draft)
    return path
  }

  private name(address: string, path: string): void {
    if (!this.byAddress.has(address)) this.byAddress.set(address, path)
  }

  private bind(base: string, anchor: string, path: string): void {
    const known = this.dynamicAnchors.get(base) ?? new Map()
    this.dynamicAnchors.set(base, known.set(anchor, path))
  }

  draftOf(place: SchemaLocation): Draft {
    return this.draftAt.get(place.base)!
  }

  /** Returns the keywords beside a `$ref` that the draft ignores. */
  ignoredIn(place: SchemaLocation): readonly string[] {
    const { schema } = this.raw(place.path)
    return isOnlyReference(schema, this.draftOf(place))
      ? Object.keys(schema).filter((keyword) => keyword !== "$ref")
      : []
  }

  /** Names a schema with what its dynamic references lead to. */
  keyOf({ path, scope }: SchemaLocation): string {
    return scope ? `${path} ${JSON.stringify([...scope].sort())}` : path
  }

  /** Returns the schema below another. */
  at(place: SchemaLocation, ...names: readonly (string | number)[]): SchemaLocation {
    return this.entered(this.effective(this.below(place, names)), place.scope)
  }

  private below(place: SchemaLocation, names: readonly (string | number)[]): SchemaLocation {
    return names.reduce<SchemaLocation>((from, name) => {
      const path = child(from.path, name)
      const inside = Array.isArray(from.schema)
        ? from.schema[name as number]
        : isObject(from.schema)
          ? ownValue(from.schema, String(name))
          : undefined
      return { schema: inside, path, base: this.draftAt.has(path) ? path : from.base }
    }, place)
  }

  private effective(place: SchemaLocation): SchemaLocation {
    const { schema } = place
    return isOnlyReference(schema, this.draftOf(place))
      ? { ...place, schema: { $ref: schema.$ref } }
      : place
  }

  /** Adds the dynamic anchors of a schema's resource; those of outer resources come first. */
  private entered(place: SchemaLocation, outer: DynamicScope | undefined): SchemaLocation {
    const own = this.dynamicAnchors.get(place.base)
    const scope = own ? new Map([...own, ...(outer ?? [])]) : outer
    return scope ? { ...place, scope } : place
  }

  private raw(path: string): SchemaLocation {
    const name = path.split("/", 1)[0]!
    const start = { schema: this.documents.get(name), path: name, base: name }
    return this.below(start, namesIn(path))
  }

  private place(path: string): SchemaLocation {
    return this.effective(this.raw(path))
  }

  /** Resolves a `$ref`; undefined: its target is not in this document. */
  follow(ref: string, from: SchemaLocation): SchemaLocation | undefined {
    const address = resolved(ref, this.addressOf.get(from.base)!)
    const target = address === undefined ? undefined : this.find(address)
    return target && this.entered(target, from.scope)
  }

  private find(address: string): SchemaLocation | undefined {
    const [resource = "", fragment = ""] = address.split("#") as [string, string?]
    this.load(resource)
    const exact = this.byAddress.get(address)
    if (exact !== undefined) return this.place(exact)
    const found = this.byAddress.get(resource)
    if (found === undefined) return undefined
    if (fragment === "") return this.place(found)
    if (!fragment.startsWith("/")) return undefined
    try {
      const place = this.below(this.raw(found), namesIn(decodeURIComponent(fragment)))
      return place.schema === undefined ? undefined : this.effective(place)
    } catch {
      return undefined
    }
  }

  private load(resource: string): void {
    if (this.byAddress.has(resource)) return
    const schema = metaSchema(resource)
    // a name without slashes, as a JSON pointer follows
    if (schema !== undefined) this.add(resource.replaceAll("/", " "), schema, resource)
  }

  /** Resolves the references of a schema; undefined: a target is not in this document. */
  references(place: SchemaLocation): readonly Reference[] {
    const { schema } = place
    if (!isObject(schema)) return []
    return references.flatMap((keyword): readonly Reference[] => {
      const ref = ownValue(schema, keyword)
      return typeof ref === "string"
        ? [{ keyword, ref, target: this.resolve[keyword](ref, place) }]
        : []
    })
  }

  /** Resolves `$dynamicRef`: the outermost resource on the way here may redefine its anchor. */
  private followDynamic(ref: string, from: SchemaLocation): SchemaLocation | undefined {
    const first = this.follow(ref, from)
    const anchor = ref.slice(ref.indexOf("#") + 1)
    return first && this.redefined(first, anchor, from)
  }

  /** Resolves `$recursiveRef`. */
  private followRecursive(from: SchemaLocation): SchemaLocation {
    return this.redefined(this.entered(this.place(from.base), from.scope), recursive, from)
  }

  private redefined(
    first: SchemaLocation,
    anchor: string,
    { scope }: SchemaLocation,
  ): SchemaLocation {
    if (this.dynamicAnchors.get(first.base)?.get(anchor) !== first.path) return first
    const outermost = scope?.get(anchor)
    return outermost === undefined ? first : this.entered(this.place(outermost), scope)
  }
}
