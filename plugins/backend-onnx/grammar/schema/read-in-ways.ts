import type { Json } from "../../../../core/json.ts"
import { losesCounts } from "./counts.ts"
import { isObject } from "./json-value.ts"
import { overlapsPatterns } from "./name-patterns.ts"
import { mostProperties, propertiesIn } from "./pattern/parser.ts"
import { countPatternWork } from "./pattern.ts"
import { Reader, type ReadSchema } from "./read-schema.ts"
import { type ReadingOptions, SchemaInvalid } from "./reading.ts"
import { tooManyWays } from "./ways.ts"

/**
 * The ways of reading, from the one that guides best to the one that leaves most to guards: each
 * is tried where the one before needs too many alternatives.
 */
const ways: readonly Pick<ReadingOptions, "mostWays" | "isMerging" | "isChoosing">[] = [
  { mostWays: 100, isMerging: true, isChoosing: true },
  { mostWays: 0, isMerging: true, isChoosing: true },
  { mostWays: 0, isMerging: false, isChoosing: true },
  { mostWays: 0, isMerging: false, isChoosing: false },
]

/** A keyword of our own: the first way that is tried. */
const wayKeyword = "x-reading"

/** Returns the schema to be read in the next way; undefined: there is none. */
export const readPlainer = (schema: Json, { way }: ReadSchema): Json | undefined =>
  isObject(schema) && way + 1 < ways.length ? { ...schema, [wayKeyword]: way + 1 } : undefined

/** The maximum number of Unicode properties that the patterns of a schema name together. */
const mostPropertiesOfSchema = 60

/** Counts them in all texts: the validator reads patterns in places that are not read here. */
const limitProperties = (schema: Json): void => {
  const found = new Set<string>()
  for (const text of (JSON.stringify(schema) ?? "").split('"')) {
    const properties = propertiesIn(text)
    if (properties.size <= mostProperties) for (const property of properties) found.add(property)
  }
  if (found.size > mostPropertiesOfSchema)
    throw new SchemaInvalid("", `patterns name more than ${mostPropertiesOfSchema} properties`)
}

/** Throws `SchemaInvalid`. */
export const readSchema = (schema: Json): ReadSchema => {
  limitProperties(schema)
  const first = isObject(schema) ? Number(schema[wayKeyword]) : 0
  let way = ways[first] ? first : 0
  // what is found to fail is left out by itself first
  const left = { isCounting: true, isWritingPatterns: true }
  for (;;) {
    countPatternWork()
    const found = new Reader(schema, { ...ways[way]!, ...left }).whole()
    if (left.isCounting && losesCounts(found.enforced)) left.isCounting = false
    else if (left.isWritingPatterns && overlapsPatterns(found.enforced))
      left.isWritingPatterns = false
    else if (way + 1 < ways.length && tooManyWays(found.enforced)) way++
    else return { ...found, way }
  }
}
