import { Effect, Schema } from "effect"
import { type ApiError, apiError, isLongerThan, type PortError, type Strings } from "../../core/index.ts"

export interface Page {
  readonly limit: number
  /** The id of the last item that the caller has seen. */
  readonly after: string | undefined
}

const defaultLimit = 20
const maxLimit = 100

export const badQuery = (param: string, rule: string): ApiError => apiError("invalid_request_error", `${param}: ${rule}`, { param })

/** Ids are ours: anything else names nothing, and never gets to the database. */
export const isId = (text: string): boolean => /^[\x21-\x7e]{1,100}$/.test(text)

/** `?limit=` (20 unless told) and `?after=`. */
export const readPage = ({ limit = String(defaultLimit), after }: Strings): Effect.Effect<Page, ApiError> => {
  const count = /^\d{1,3}$/.test(limit) ? Number(limit) : 0
  if (count < 1 || count > maxLimit) return Effect.fail(badQuery("limit", `must be a whole number from 1 to ${maxLimit}`))
  return Effect.succeed({ limit: count, after })
}

const unknownAfter = () => badQuery("after", "there is no such object on this list")

/** The place of the item that `after` names, or 400 when it is on no list of this caller. */
export const placeOf = <A>(after: string | undefined, find: (id: string) => Effect.Effect<A | undefined, PortError>): Effect.Effect<A | undefined, ApiError | PortError> => {
  if (after === undefined) return Effect.succeed(undefined)
  if (!isId(after)) return Effect.fail(unknownAfter())
  return Effect.flatMap(find(after), (place) => (place === undefined ? Effect.fail(unknownAfter()) : Effect.succeed(place)))
}

export const listSchema = <S extends Schema.Top>(item: S, identifier: string) =>
  Schema.Struct({
    object: Schema.Literal("list"),
    data: Schema.Array(item),
    has_more: Schema.Boolean,
    first_id: Schema.NullOr(Schema.String),
    last_id: Schema.NullOr(Schema.String),
  }).annotate({ identifier })

/** One page. Ask for `limit + 1` rows: whether the last one is there says whether there is more. */
export const firstOf = <Row>(rows: readonly Row[], { limit }: Page) => ({ rows: rows.slice(0, limit), hasMore: rows.length > limit })

export const toList = <Item extends { readonly id: string }>(data: readonly Item[], hasMore: boolean) => ({
  object: "list",
  data,
  has_more: hasMore,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})

/** A filter of a list; empty is as if absent, as forms send it. */
export const readFilter = (query: Strings, name: string, maxCharacters: number): Effect.Effect<string | undefined, ApiError> => {
  const text = query[name]
  if (text === undefined || text === "") return Effect.succeed(undefined)
  if (isLongerThan(text, maxCharacters) || text.includes("\0")) return Effect.fail(badQuery(name, `must have at most ${maxCharacters} characters, and no NUL`))
  return Effect.succeed(text)
}

const dayMs = 86_400_000
/** The last second that JavaScript and PostgreSQL both know without an era. */
const maxSeconds = 253_402_300_799

const dateMs = (text: string): number => (/^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN)

/** Dates that don't exist roll over in `Date.parse`, or give NaN. */
const isDate = (text: string): boolean => {
  const ms = dateMs(text)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

/** Unix seconds, or a day of UTC: as `from` its beginning, as `to` its end. */
export const readTime = (query: Strings, name: "from" | "to"): Effect.Effect<Date | undefined, ApiError> => {
  const text = query[name]
  if (text === undefined || text === "") return Effect.succeed(undefined)
  if (/^\d{1,12}$/.test(text) && Number(text) <= maxSeconds) return Effect.succeed(new Date(Number(text) * 1000))
  if (isDate(text)) return Effect.succeed(new Date(dateMs(text) + (name === "to" ? dayMs : 0)))
  return Effect.fail(badQuery(name, "must be Unix seconds, or a date as in 2026-01-31"))
}
