import type { Json } from "../../../../core/json.ts"
import { isObject, ownValue } from "./json-value.ts"
import { child, namesIn } from "./pointer.ts"

/** A schema with its location in the document. */
export interface SchemaLocation {
  readonly schema: Json
  readonly path: string
  /** Path of its schema resource: the nearest enclosing schema with an `$id`. */
  readonly base: string
}

// values of these keywords are data, not schemas
const dataKeywords = new Set(["const", "enum", "default", "examples", "example"])
const asAddress = "rakit:/"

const resolved = (uri: string, base: string): string | undefined =>
  URL.canParse(uri, base) ? new URL(uri, base).href : undefined

/** Before draft 2019-09 keywords beside a `$ref` are ignored, including `$id`. */
const isOld = (root: Json): boolean => isObject(root) && /draft-0[3467]/.test(String(root.$schema))

const idOf = (schema: Json, isOldDraft: boolean): string | undefined => {
  if (!isObject(schema) || (isOldDraft && schema.$ref !== undefined)) return undefined
  const id = ownValue(schema, "$id") ?? ownValue(schema, "id")
  return typeof id === "string" ? id : undefined
}

/** A schema document, in which `$ref` is resolved. */
export class SchemaDocument {
  readonly root: SchemaLocation
  private readonly rootSchema: Json
  /** Paths by the address of a resource or an anchor. */
  private readonly byAddress = new Map<string, string>()
  private readonly addressOf = new Map<string, string>()
  /** Paths at which a resource of its own begins. */
  private readonly places = new Set<string>()

  constructor(schema: Json) {
    this.rootSchema = schema
    this.root = { schema, path: "", base: "" }
    this.places.add("")
    this.index(schema, "", asAddress)
  }

  private index(schema: Json, path: string, base: string): void {
    if (Array.isArray(schema))
      for (const [i, item] of schema.entries()) this.index(item, child(path, i), base)
    if (!isObject(schema)) return
    const address = this.enter(schema, path, base)
    for (const anchor of [ownValue(schema, "$anchor"), ownValue(schema, "$dynamicAnchor")])
      if (typeof anchor === "string") this.name(`${address}#${anchor}`, path)
    for (const [name, value] of Object.entries(schema))
      if (!dataKeywords.has(name)) this.index(value, child(path, name), address)
  }

  /** Registers a schema's `$id` and anchors. Returns the address of its resource. */
  private enter(schema: Json, path: string, base: string): string {
    const id = idOf(schema, isOld(this.rootSchema))
    if (path === "") this.addressOf.set("", asAddress)
    if (id?.startsWith("#")) this.name(base.replace(/#.*$/, "") + id, path)
    const address =
      id === undefined || id.startsWith("#") ? undefined : resolved(id, base)?.replace(/#$/, "")
    if (address === undefined) {
      if (path === "") this.name(asAddress, "")
      return base
    }
    this.name(address, path)
    this.addressOf.set(path, address)
    this.places.add(path)
    return address
  }

  private name(address: string, path: string): void {
    if (!this.byAddress.has(address)) this.byAddress.set(address, path)
  }

  /** Returns the schema below another. */
  at(place: SchemaLocation, ...names: readonly (string | number)[]): SchemaLocation {
    return names.reduce<SchemaLocation>((from, name) => {
      const path = child(from.path, name)
      const inside = Array.isArray(from.schema)
        ? from.schema[name as number]
        : isObject(from.schema)
          ? ownValue(from.schema, String(name))
          : undefined
      return { schema: inside, path, base: this.places.has(path) ? path : from.base }
    }, place)
  }

  /** Resolves a `$ref`; undefined: its target is not in this document. */
  follow(ref: string, from: SchemaLocation): SchemaLocation | undefined {
    const address = resolved(ref, this.addressOf.get(from.base) ?? asAddress)
    if (address === undefined) return undefined
    const [resource = "", fragment = ""] = address.split("#") as [string, string?]
    const found = this.byAddress.get(address) ?? this.byAddress.get(resource)
    if (found === undefined) return undefined
    const start = this.place(found)
    if (this.byAddress.has(address) || fragment === "") return start
    if (!fragment.startsWith("/")) return undefined
    try {
      const place = this.at(start!, ...namesIn(decodeURIComponent(fragment)))
      return place.schema === undefined ? undefined : place
    } catch {
      return undefined
    }
  }

  private place(path: string): SchemaLocation {
    return this.at({ schema: this.rootSchema, path: "", base: "" }, ...namesIn(path))
  }
}
