import { Effect, Schema } from "effect"
import { type ApiError, badQuery, isLongerThan } from "../../core/index.ts"

/** A filter of a list; an empty one counts as absent, as forms send it so. */
export const textFilter = (maxCharacters: number) =>
  Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter(
        (text: string) =>
          (!isLongerThan(text, maxCharacters) && !text.includes("\0")) ||
          `must have at most ${maxCharacters} characters, and no NUL`,
      ),
    ),
  )

export const timeQuery = Schema.optionalKey(
  Schema.String.annotate({ description: "Unix seconds, or a UTC date as 2026-01-31." }),
)

const dayMs = 86_400_000
/** The last second of the year 9999. */
const maxSeconds = 253_402_300_799

const dateMs = (text: string): number =>
  /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN

/** `Date.parse` rolls dates over that don't exist, or returns NaN. */
const isDate = (text: string): boolean => {
  const ms = dateMs(text)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

/** Reads Unix seconds, or a UTC date: as `from` its beginning, as `to` its end. */
export const readTime = (
  query: { readonly [name in "from" | "to"]?: string },
  name: "from" | "to",
): Effect.Effect<Date | undefined, ApiError> => {
  const text = query[name]
  if (text === undefined || text === "") return Effect.succeed(undefined)
  if (/^\d{1,12}$/.test(text) && Number(text) <= maxSeconds)
    return Effect.succeed(new Date(Number(text) * 1000))
  if (isDate(text)) return Effect.succeed(new Date(dateMs(text) + (name === "to" ? dayMs : 0)))
  return Effect.fail(badQuery(name, "must be Unix seconds, or a date as in 2026-01-31"))
}
