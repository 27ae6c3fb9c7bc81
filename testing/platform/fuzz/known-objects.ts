import type { Json } from "../../../core/json.ts"

/** An object that a reply showed. */
export interface KnownObject {
  readonly id: string
  /** Its `object` field, or `receipt` for the id of a call. */
  readonly kind: string
  /** The id in the path of the request that showed it. */
  readonly parent: string | undefined
  readonly fields: Readonly<Record<string, Json>>
}

/** Who may see an object: an account, and one mode of it where it was reached with an API key. */
export interface Owner {
  readonly account: string
  readonly mode?: "live" | "test"
}

export interface KnownObjects {
  /** `isTheirs` is false for what an administrator sees of others. */
  add(owner: Owner, object: KnownObject, isTheirs?: boolean): void
  /** The youngest objects of a kind that the owner has. */
  of(owner: Owner, kind: string): readonly KnownObject[]
  all(owner: Owner): readonly KnownObject[]
  ownerOf(id: string): Owner | undefined
}

const keptEach = 25
const modes = ["live", "test"] as const

const nameOf = ({ account, mode }: Owner) => `${account} ${mode ?? ""}`

export const makeKnownObjects = (): KnownObjects => {
  const lists = new Map<string, Map<string, readonly KnownObject[]>>()
  const owners = new Map<string, Owner>()
  const kindsOf = (owner: Owner) => lists.get(nameOf(owner)) ?? new Map()
  return {
    add: (owner, object, isTheirs = true) => {
      const kinds = kindsOf(owner)
      const others = ((kinds.get(object.kind) ?? []) as readonly KnownObject[]).filter(
        ({ id }) => id !== object.id,
      )
      kinds.set(object.kind, [...others, object].slice(-keptEach))
      lists.set(nameOf(owner), kinds)
      if (isTheirs && !owners.has(object.id)) owners.set(object.id, owner)
    },
    of: (owner, kind) =>
      // a session reaches what keys of both modes made
      [owner, ...(owner.mode ? [] : modes.map((mode) => ({ ...owner, mode })))].flatMap(
        (one) => kindsOf(one).get(kind) ?? [],
      ),
    all: (owner) => [...kindsOf(owner).values()].flat(),
    ownerOf: (id) => owners.get(id),
  }
}

/** All objects in a reply that have an id and say what they are. */
export const objectsIn = (value: Json, parent: string | undefined): readonly KnownObject[] => {
  if (typeof value !== "object" || value === null) return []
  const inner = Object.values(value).flatMap((child) => objectsIn(child as Json, parent))
  const { id, object: kind } = value as Record<string, Json>
  if (typeof id !== "string" || typeof kind !== "string") return inner
  return [{ id, kind, parent, fields: value as Record<string, Json> }, ...inner]
}

const kinds: Readonly<Record<string, string>> = {
  files: "file",
  batches: "batch",
  webhooks: "webhook",
  deliveries: "webhook.delivery",
  uploads: "upload",
  keys: "api_key",
  accounts: "account",
  receipts: "receipt",
  models: "model",
  assets: "asset",
}

/** The kind of object that a parameter of a path names: that of the collection before it. */
export const kindBefore = (path: string, parameter: string): string => {
  const parts = path.split("/")
  return kinds[parts[parts.indexOf(`{${parameter}}`) - 1] ?? ""] ?? ""
}

/** The kind of object that a path lists or creates. */
export const kindOf = (path: string): string => kinds[path.split("/").at(-1) ?? ""] ?? ""
