import { Effect, Schema } from "effect"
import {
  type ApiError,
  apiError,
  atMostCharacters,
  decodeBody,
  hasHiddenCharacters,
  isLongerThan,
  isVisible,
  type Json,
  type Strings,
} from "../../../core/index.ts"

const maxKeys = 16
const maxKey = 64
const maxText = 512

// jsonb stores neither a NUL nor a lone surrogate
const isStorable = (text: string): boolean => !/[\0\ud800-\udfff]/u.test(text)

const problemOf = Schema.makeFilter((metadata: Strings) => {
  const keys = Object.keys(metadata)
  if (keys.length > maxKeys) return `must have at most ${maxKeys} keys`
  if (keys.some((key) => !isVisible(key) || isLongerThan(key, maxKey)))
    return `must have keys of 1 to ${maxKey} characters`
  if (keys.some(hasHiddenCharacters))
    return "must have keys without control or invisible characters"
  return Object.values(metadata).every(isStorable) || "must hold text without NUL"
})

export const metadataLimits = `Up to ${maxKeys} keys of up to ${maxKey} characters, with texts of up to ${maxText}.`

/** What a file is filed under, for filters. */
export const Metadata = Schema.Record(
  Schema.String,
  Schema.String.check(atMostCharacters(maxText)),
).check(problemOf)

const Whole = Schema.Struct({ metadata: Metadata })

const wrong = (why: string): ApiError =>
  apiError("invalid_request_error", `metadata: ${why}`, { param: "metadata" })

const parsed = (text: string): Effect.Effect<Json, ApiError> =>
  Effect.try({
    try: () => JSON.parse(text) as Json,
    catch: () => wrong("must be a JSON object, or come as metadata[key]"),
  })

/** Reads the form fields `metadata[key]`, or one field `metadata` with a JSON object. */
export const readMetadata = (
  fields: ReadonlyMap<string, string>,
): Effect.Effect<Strings, ApiError> =>
  Effect.gen(function* () {
    const whole = fields.get("metadata")
    const single = [...fields].flatMap(([name, text]) => {
      const key = /^metadata\[(.*)\]$/s.exec(name)?.[1]
      return key === undefined ? [] : [[key, text] as const]
    })
    if (single.some(([key]) => key.includes("][")))
      return yield* wrong("must hold texts, no objects, and keys without ][")
    if (whole !== undefined && single.length > 0)
      return yield* wrong("must come either as JSON or as metadata[key]")
    const given = whole === undefined ? Object.fromEntries(single) : yield* parsed(whole)
    return (yield* decodeBody(Whole, { metadata: given })).metadata
  })
