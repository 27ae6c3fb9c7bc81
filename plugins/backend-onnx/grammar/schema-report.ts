import type { Json } from "../../../core/json.ts"
import type { KeywordVerdict } from "../../../core/ports/schema-checker.ts"
import { isObject, type JsonObject } from "./schema/json-value.ts"
import { namesIn } from "./schema/pointer.ts"
import { readSchema } from "./schema/read-schema.ts"
import type { Guided } from "./schema/reading.ts"

/**
 * How the masks' engine writes. Between two parts of a document at most one space, or a new line with an indent: a model must not fill its budget with
 * nothing. No `\u` escapes: with them a name that is taken, or refused, could be written again in other letters.
 */
const manner = { whitespace_pattern: "\\x20|\\n\\x20{0,24}", json_allowed_escapes: 'nrbtf\\"' }

export interface SchemaAnalysis {
  readonly keywords: readonly KeywordVerdict[]
  /** The first keyword that can't be kept: a strict request is refused for it. */
  readonly refused: KeywordVerdict | undefined
  /** What is kept, as the masks' engine reads it; also in Lark, after `%json`. Undefined: no document satisfies the schema. */
  readonly guided: JsonObject | undefined
}

/** Pure, and in time that grows with the schema. Throws `SchemaInvalid` for what is no JSON Schema. */
export const analyseSchema = (schema: Json): SchemaAnalysis => {
  const { verdicts, guided } = readSchema(schema)
  return {
    keywords: verdicts,
    refused: verdicts.find(({ verdict }) => verdict === "refused"),
    guided: asked(guided),
  }
}

const asked = (guided: Guided): JsonObject | undefined => {
  if (guided === false) return undefined
  return { "x-guidance": manner, ...(guided === true ? {} : guided) }
}

/** A schema without what is refused, for guiding as far as it goes: a `oneOf` becomes an `anyOf`. */
export const relax = (schema: Json): Json => {
  const relaxed = structuredClone(schema)
  const refused = analyseSchema(schema).keywords.filter(({ verdict }) => verdict === "refused")
  // the deepest first: what is inside of a keyword that goes away goes too
  for (const { path } of [...refused].sort((a, b) => b.path.length - a.path.length))
    drop(relaxed, namesIn(path))
  return relaxed
}

const drop = (schema: Json, path: readonly string[]): void => {
  const holder = path
    .slice(0, -1)
    .reduce<Json>(
      (inside, name) =>
        isObject(inside) || Array.isArray(inside) ? (inside as JsonObject)[name] : undefined,
      schema,
    ) as Record<string, Json> | undefined
  const keyword = path.at(-1)!
  if (!holder) return
  const branches = holder[keyword]
  delete holder[keyword]
  if (keyword !== "oneOf") return
  if (holder.anyOf === undefined) holder.anyOf = branches
  else
    holder.allOf = [...((holder.allOf as readonly Json[] | undefined) ?? []), { anyOf: branches }]
}
