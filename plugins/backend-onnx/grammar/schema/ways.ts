import type { Json } from "../../../../core/json.ts"
import { isObject } from "./json-value.ts"
import type { EnforcedSchema } from "./reading.ts"

/**
 * A tenth of the items that an engine's parser keeps per row (`rowItems`): where schemas are merged
 * below this place, which is not counted, there may be several times more.
 */
const most = 1_900
const waysOfOptional = 4
const mostOptional = Math.floor((most - 1) / waysOfOptional)

type Parts = Readonly<Record<string, Json>>

const kinds = ["object", "array", "other"] as const

/** The alternatives of one kind at one place. */
interface Ways {
  readonly count: number
  /** The optional properties in a row that one of them may have. */
  readonly run: number
  /** All optional properties that one of them may have. */
  readonly optional: number
}
type WaysByKind = Readonly<Record<(typeof kinds)[number], Ways>>

const none: Ways = { count: 0, run: 0, optional: 0 }
const single: Ways = { count: 1, run: 0, optional: 0 }
const nothing: WaysByKind = { object: none, array: none, other: none }
const anything: WaysByKind = { object: single, array: single, other: single }

const byKind = (of: (kind: (typeof kinds)[number]) => Ways): WaysByKind => ({
  object: of("object"),
  array: of("array"),
  other: of("other"),
})

const either = (all: readonly WaysByKind[]): WaysByKind =>
  byKind((kind) => ({
    count: all.reduce((sum, ways) => sum + ways[kind].count, 0),
    run: Math.max(0, ...all.map((ways) => ways[kind].run)),
    optional: Math.max(0, ...all.map((ways) => ways[kind].optional)),
  }))

/** In what is merged, the properties of the first come first, then all others of the second. */
const merged = (all: readonly WaysByKind[]): WaysByKind =>
  all.reduce((a, b) =>
    byKind((kind) => ({
      count: Math.min(a[kind].count * b[kind].count, Number.MAX_SAFE_INTEGER),
      run: a[kind].run + b[kind].optional,
      optional: a[kind].optional + b[kind].optional,
    })),
  )

const sumOf = (ways: WaysByKind): number =>
  kinds.reduce((sum, kind) => sum + ways[kind].count * (1 + waysOfOptional * ways[kind].run), 0)

/**
 * How many alternatives a schema is merged to, without those that it refers to. Texts and numbers
 * become one expression.
 */
export const alternativesOf = (schema: Json): number => {
  const { object, array, other } = countOf(schema)
  return object + array + Math.min(1, other)
}

type Counts = Readonly<Record<(typeof kinds)[number], number>>

const countOf = (schema: Json): Counts => {
  if (!isObject(schema)) return schema === false ? noCounts : { object: 1, array: 1, other: 1 }
  const each = (list: Json) => (list as readonly Json[]).map(countOf)
  const combined = (counts: readonly Counts[], by: (a: number, b: number) => number): Counts => ({
    object: counts.map(({ object }) => object).reduce(by),
    array: counts.map(({ array }) => array).reduce(by),
    other: counts.map(({ other }) => other).reduce(by),
  })
  if (schema.allOf) return combined(each(schema.allOf), (a, b) => Math.min(a * b, 1e9))
  if (schema.anyOf) return combined(each(schema.anyOf), (a, b) => a + b)
  if (schema.type === "object") return { ...noCounts, object: 1 }
  if (schema.type === "array") return { ...noCounts, array: 1 }
  if (schema.type !== undefined || schema.enum) return { ...noCounts, other: 1 }
  return { object: 1, array: 1, other: 1 }
}

const noCounts: Counts = { object: 0, array: 0, other: 0 }

/**
 * Returns why llguidance would exceed that limit, if it would: too many optional properties in a
 * row, or too many alternatives of objects and arrays.
 */
export const tooManyWays = (enforced: EnforcedSchema): string | undefined => {
  const defs = isObject(enforced) && isObject(enforced.$defs) ? enforced.$defs : {}
  const known = new Map<string, WaysByKind>()
  let found: string | undefined
  const waysOfRef = (name: string): WaysByKind => {
    const ways = known.get(name)
    if (ways !== undefined) return ways
    known.set(name, anything)
    known.set(name, waysOf(defs[name]!))
    return known.get(name)!
  }
  const ofObject = (schema: Parts): Ways => {
    for (const part of ["properties", "patternProperties"])
      if (isObject(schema[part])) for (const value of Object.values(schema[part])) waysOf(value)
    waysOf(schema.additionalProperties)
    const { run, optional } = optionalIn(schema)
    if (run > mostOptional)
      found ??= `"properties" with ${run} optional ones in a row; at most ${mostOptional} are kept`
    return { count: 1, run, optional }
  }
  const alternatives = (schema: Parts): WaysByKind => {
    const each = (list: Json): readonly WaysByKind[] =>
      Array.isArray(list) ? list.map(waysOf) : []
    if (typeof schema.$ref === "string") return waysOfRef(schema.$ref.slice("#/$defs/".length))
    if (Array.isArray(schema.allOf)) return merged(each(schema.allOf))
    if (Array.isArray(schema.anyOf)) return either(each(schema.anyOf))
    if (Array.isArray(schema.enum)) return ofValues(schema.enum)
    if (schema.type === "object") return { ...nothing, object: ofObject(schema) }
    for (const one of [schema.items, schema.prefixItems])
      Array.isArray(one) ? each(one) : waysOf(one)
    if (schema.type === "array") return { ...nothing, array: single }
    return schema.type === undefined ? anything : { ...nothing, other: single }
  }
  const waysOf = (schema: Json): WaysByKind => {
    if (!isObject(schema)) return schema === false ? nothing : anything
    const ways = alternatives(schema)
    const sum = sumOf(ways)
    if (sum > most)
      found ??= `${sum} objects, arrays and properties to choose from at one place; at most ${most} are kept`
    return ways
  }
  // a definition is found before those that it refers to: in reverse, nothing goes deep
  for (const name of Object.keys(defs).reverse()) waysOfRef(name)
  waysOf(enforced)
  return found
}

/** Texts and numbers in an `enum` are one alternative, however many they are. */
const ofValues = (values: readonly Json[]): WaysByKind => {
  const count = (isOf: (value: Json) => boolean): Ways => ({
    ...single,
    count: values.filter(isOf).length,
  })
  const array = count((value) => Array.isArray(value))
  const object = count(isObject)
  const other = values.length > array.count + object.count ? single : none
  return { object, array, other }
}

const optionalIn = (schema: Parts): { readonly run: number; readonly optional: number } => {
  const required = new Set((schema.required ?? []) as readonly string[])
  let longest = 0
  let run = 0
  let optional = 0
  for (const [name, value] of Object.entries(
    isObject(schema.properties) ? schema.properties : {},
  )) {
    if (value === false) continue
    if (!required.has(name)) optional++
    run = required.has(name) ? 0 : run + 1
    longest = Math.max(longest, run)
  }
  return { run: longest, optional }
}
