import type { Json } from "../../../../core/json.ts"
import { type Defs, nameIn, settle } from "./fixed-point.ts"
import { isObject } from "./json-value.ts"
import type { EnforcedSchema } from "./reading.ts"

type Parts = Readonly<Record<string, Json>>
type SizeOf = (schema: Json) => number

/** Beyond this no model writes a document to its end, whatever its window. */
export const mostDocumentBytes = 2 ** 20

/** Sizes are cut here, so that none overflows to infinity, which means that there is no document. */
const largestSize = 1e100

/** Calls for each definition after which sizes that still shrink are left undecided. */
const mostCalls = 64

const listOf = (value: Json): readonly Json[] => (Array.isArray(value) ? value : [])
const byteLength = (value: Json): number => Buffer.byteLength(JSON.stringify(value) ?? "")
const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0)

const plainBytes: Readonly<Record<string, number>> = { null: 4, boolean: 4 }

const cut = (size: number): number =>
  size === Number.POSITIVE_INFINITY ? size : Math.min(size, largestSize)

const ofArray = (schema: Parts, sizeOf: SizeOf): number => {
  const least = cut(Number(schema.minItems ?? 0))
  const fixed = listOf(schema.prefixItems).slice(0, least)
  const others = least - fixed.length
  const rest = others === 0 ? 0 : others * sizeOf(schema.items ?? true)
  return 2 + Math.max(0, least - 1) + sum(fixed.map(sizeOf)) + rest
}

const ofObject = (schema: Parts, sizeOf: SizeOf): number => {
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required = listOf(schema.required) as readonly string[]
  const ofValue = (name: string) => (Object.hasOwn(properties, name) ? sizeOf(properties[name]) : 1)
  const members = required.map((name) => byteLength(name) + 1 + ofValue(name))
  const count = Math.max(members.length, Number(schema.minProperties ?? 0))
  // a further member is at least `"":0`
  return 2 + Math.max(0, count - 1) + sum(members) + 4 * (count - members.length)
}

/** Returns a lower bound of a document's bytes. */
const bytesOf = (schema: Json, ofDefinition: (name: string) => number): number => {
  const sizeOf: SizeOf = (part) => cut(bytesOf(part, ofDefinition))
  if (schema === false) return Number.POSITIVE_INFINITY
  if (!isObject(schema)) return 1
  if (schema.$ref !== undefined) return ofDefinition(nameIn(schema.$ref))
  if (Array.isArray(schema.allOf))
    return schema.allOf.reduce<number>((most, part) => Math.max(most, sizeOf(part)), 1)
  if (Array.isArray(schema.anyOf))
    return schema.anyOf.reduce<number>(
      (least, part) => Math.min(least, sizeOf(part)),
      Number.POSITIVE_INFINITY,
    )
  if (Array.isArray(schema.enum))
    return schema.enum.reduce<number>(
      (least, value) => Math.min(least, byteLength(value)),
      Number.POSITIVE_INFINITY,
    )
  if (schema.type === "string") return 2 + Number(schema.minLength ?? 0)
  if (schema.type === "array") return ofArray(schema, sizeOf)
  if (schema.type === "object") return ofObject(schema, sizeOf)
  return plainBytes[String(schema.type)] ?? 1
}

/** The least sizes of definitions, as a fixed point; undefined: not found within the calls. */
const sizesOf = (defs: Defs): ReadonlyMap<string, number> | undefined => {
  const sizes = new Map<string, number>()
  const ofDefinition = (name: string) => sizes.get(name) ?? Number.POSITIVE_INFINITY
  const isSettled = settle(
    defs,
    (name, schema) => {
      const size = cut(bytesOf(schema, ofDefinition))
      const isSmaller = size < ofDefinition(name)
      if (isSmaller) sizes.set(name, size)
      return isSmaller
    },
    mostCalls,
  )
  return isSettled ? sizes : undefined
}

export interface Endless {
  /** The schemas from the root to the one whose parts are small enough, each by itself. */
  readonly way: readonly Parts[]
  readonly keyword: string
}

const keywordOf = ({ type, allOf }: Parts): string => {
  if (type === "array") return "minItems"
  if (type === "string") return "minLength"
  if (type === "object") return "required"
  return allOf === undefined ? "anyOf" : "allOf"
}

const partsOf = (schema: Parts): readonly Json[] => [
  ...listOf(schema.allOf),
  ...listOf(schema.anyOf),
  ...listOf(schema.prefixItems),
  schema.items,
  ...(isObject(schema.properties)
    ? listOf(schema.required).map((name) => (schema.properties as Parts)[String(name)])
    : []),
]

/**
 * Finds the part of a schema whose smallest document is too large to be ever written: `minItems` of
 * a billion, or references that double forty times. Undefined also where no document satisfies it.
 */
export const endlessPart = (root: EnforcedSchema, defs: Defs): Endless | undefined => {
  const sizes = sizesOf(defs)
  if (!sizes) return undefined
  const ofDefinition = (name: string) => sizes.get(name) ?? Number.POSITIVE_INFINITY
  const isEndless = (part: Json): part is Parts => {
    if (!isObject(part)) return false
    const size = bytesOf(part, ofDefinition)
    return size > mostDocumentBytes && size < Number.POSITIVE_INFINITY
  }
  let found: Json = root
  const way = new Set<Parts>()
  while (isEndless(found) && !way.has(found)) {
    way.add(found)
    const inside: Json =
      found.$ref === undefined ? partsOf(found).find(isEndless) : defs.get(nameIn(found.$ref))
    if (inside === undefined) return { way: [...way], keyword: keywordOf(found) }
    found = inside
  }
  return undefined
}
