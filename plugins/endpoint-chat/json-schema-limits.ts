import { Schema } from "effect"
import { isLongerThan } from "../../core/characters.ts"
import type { Json } from "../../core/json.ts"

/** The size limits of a JSON Schema in a request. Which keywords are allowed is up to the model. */
export const schemaLimits = {
  characters: 512 * 1024,
  levels: 64,
  properties: 10_000,
  nameCharacters: 256,
} as const

const isObject = (value: Json): value is Readonly<Record<string, Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const lengths = new WeakMap<object, number>()

/** Returns the length of the schema as JSON, in UTF-16 units; known once it was measured. */
export const lengthOf = (schema: Json): number => {
  const isKey = typeof schema === "object" && schema !== null
  const known = isKey ? lengths.get(schema) : undefined
  if (known !== undefined) return known
  const length = JSON.stringify(schema)?.length ?? 0
  if (isKey) lengths.set(schema, length)
  return length
}

const count = (most: number): string => most.toLocaleString("en")

export const oversize = (schema: Json): string | undefined => {
  let properties = 0
  const walk = (value: Json, level: number): string | undefined => {
    if (typeof value !== "object" || value === null) return undefined
    if (level > schemaLimits.levels)
      return `must be nested at most ${schemaLimits.levels} levels deep`
    // entries would be copies of a large object
    for (const key in value) {
      const child = (value as Readonly<Record<string, Json>>)[key]
      if (key === "properties" && isObject(child)) {
        for (const name in child) {
          if (++properties > schemaLimits.properties)
            return `must have at most ${count(schemaLimits.properties)} properties`
          if (isLongerThan(name, schemaLimits.nameCharacters))
            return `must have property names of at most ${schemaLimits.nameCharacters} characters`
        }
      }
      const wrong = walk(child, level + 1)
      if (wrong !== undefined) return wrong
    }
    return undefined
  }
  const tooLong = `must have at most ${count(schemaLimits.characters)} characters as JSON`
  return walk(schema, 1) ?? (lengthOf(schema) > schemaLimits.characters ? tooLong : undefined)
}

const measured = Schema.makeFilter((schema: Json) => oversize(schema))

/** A JSON Schema: an object, or `true` or `false`. */
export const JsonSchemaBody = Schema.Union([
  Schema.Record(Schema.String, Schema.Unknown),
  Schema.Boolean,
])
  .annotate({ message: "must be a JSON Schema: an object" })
  .check(measured)
  .annotate({ identifier: "JsonSchema", description: "A JSON Schema (draft 2020-12)." })

const ofObjects = Schema.makeFilter(
  (schema: Readonly<Record<string, Json>>) =>
    schema.type === "object" || "must be a JSON Schema with type 'object'",
)

export const ParametersSchema = Schema.Record(Schema.String, Schema.Unknown)
  .check(ofObjects)
  .check(measured)
  .annotate({
    identifier: "ToolParameters",
    description: "A JSON Schema of type `object`; absent: the tool takes none.",
  })
