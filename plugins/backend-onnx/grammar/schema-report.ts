import type { Json } from "../../../core/json.ts"
import type { KeywordVerdict } from "../../../core/ports/schema-checker.ts"
import type { Guards } from "./schema/guards.ts"
import { isObject, type JsonObject } from "./schema/json-value.ts"
import { namesIn } from "./schema/pointer.ts"
import { readPlainer, readSchema } from "./schema/read-in-ways.ts"
import type { TextPlace } from "./schema/read-schema.ts"
import type { EnforcedSchema } from "./schema/reading.ts"

/**
 * How llguidance lets JSON be written. Between two parts of a document at most one space, or a line
 * break with an indent: a model must not fill its budget with
 * white space. No `\u` escapes: with them a forbidden or duplicate property name could be spelled
 * differently.
 */
const manner = { whitespace_pattern: "\\x20|\\n\\x20{0,24}", json_allowed_escapes: 'nrbtf\\"' }

export interface SchemaAnalysis {
  readonly keywords: readonly KeywordVerdict[]
  /** The first keyword that can't be enforced, for which a strict request is refused. */
  readonly refused: KeywordVerdict | undefined
  /**
   * The enforced schema, in llguidance's dialect; also used in Lark, after `%json`. Undefined: no
   * document satisfies the schema.
   */
  readonly enforced: JsonObject | undefined
  /** What is checked beside `enforced` on finished values. */
  readonly guards?: Guards
  /** Texts with a pattern, a format or a length. */
  readonly texts: readonly TextPlace[]
  /** The schema with the request to leave more to guards, if it can be read so. */
  readonly plainer?: Json
  /** How long the analysis took, which opening a grammar repeats. */
  readonly analysisMs: number
}

/**
 * Analyses a schema, in time linear in its size. Throws `SchemaInvalid` for what is not a JSON
 * Schema.
 */
export const analyseSchema = (schema: Json): SchemaAnalysis => {
  const startedMs = performance.now()
  const read = readSchema(schema)
  const { verdicts, enforced, guards, texts } = read
  const plainer = readPlainer(schema, read)
  return {
    keywords: verdicts,
    refused: verdicts.find(({ verdict }) => verdict === "refused"),
    enforced: asked(enforced),
    texts,
    ...(guards && { guards }),
    ...(plainer !== undefined && { plainer }),
    analysisMs: performance.now() - startedMs,
  }
}

/** The enforced schema with how documents are written. */
export const asked = (enforced: EnforcedSchema): JsonObject | undefined => {
  if (enforced === false) return undefined
  return { "x-guidance": manner, ...(enforced === true ? {} : enforced) }
}

/**
 * Removes the keywords that are refused, and those at `more` paths, for requests that are not
 * strict; a `oneOf` becomes an `anyOf`.
 */
export const relax = (schema: Json, more: readonly string[] = []): Json => {
  const relaxed = structuredClone(schema)
  const refused = analyseSchema(schema).keywords.filter(({ verdict }) => verdict === "refused")
  const paths = new Set([...refused.map(({ path }) => path), ...more])
  // the deepest first, as removing a keyword removes everything inside it
  for (const path of [...paths].sort((a, b) => b.length - a.length)) drop(relaxed, namesIn(path))
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
