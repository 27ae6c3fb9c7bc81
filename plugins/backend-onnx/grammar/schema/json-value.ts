import type { Json } from "../../../../core/json.ts"

export type JsonObject = Readonly<Record<string, Json>>

export const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isNumber = (value: Json): value is number => typeof value === "number"

export const isCount = (value: Json): value is number =>
  Number.isInteger(value) && (value as number) >= 0

export const isTexts = (value: Json): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string")

/** Reads own properties only: `constructor` is a name like any other. */
export const ownValue = (object: JsonObject, name: string): Json =>
  Object.hasOwn(object, name) ? object[name] : undefined

export const typesOfJson = ["null", "boolean", "number", "string", "array", "object"] as const
export type JsonType = (typeof typesOfJson)[number]

export const typeOfValue = (value: Json): JsonType => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return typeof value as JsonType
}

/** Compares as JSON Schema does: numbers by value, objects regardless of order. */
export const isEqual = (a: Json, b: Json): boolean => {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, i) => isEqual(item, b[i]))
  if (!isObject(a) || !isObject(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]))
  )
}

const texts = new WeakMap<object, string>()

/** Returns a text that is equal for values which JSON Schema holds equal. */
export const canonicalText = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value === 0 ? 0 : value)
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = writtenText(value)
  texts.set(value, text)
  return text
}

const writtenText = (value: object): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`
  const parts = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, part]) => `${JSON.stringify(name)}:${canonicalText(part)}`)
  return `{${parts.join(",")}}`
}
