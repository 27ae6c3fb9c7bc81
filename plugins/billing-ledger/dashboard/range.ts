import { Effect, Schema } from "effect"
import { type ApiError, badQuery } from "../../../core/index.ts"

/** Unix ms; `toMs` is exclusive. */
export interface Range {
  readonly fromMs: number
  readonly toMs: number
}

const moment = (what: string) =>
  Schema.optionalKey(
    Schema.String.annotate({ description: `${what}: Unix seconds, or a UTC date as 2026-01-31.` }),
  )

export const rangeQuery = { from: moment("From"), to: moment("To; a date includes its whole day") }
const RangeQuery = Schema.Struct(rangeQuery)
type RangeQuery = typeof RangeQuery.Type

const dayMs = 86_400_000
const hourMs = 3_600_000
/** The first second of the year 10000. */
const endOfTimeMs = Date.UTC(10_000, 0)
const defaultDays = 30

interface Moment {
  readonly ms: number
  /** The exclusive end of a range with this as `to`: a date includes its whole day. */
  readonly endMs: number
}

const momentOf = (text: string): Moment | undefined => {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const ms = isDay
    ? Date.parse(`${text}T00:00:00Z`)
    : /^\d{1,12}$/.test(text)
      ? Number(text) * 1000
      : Number.NaN
  if (!(ms >= 0 && ms < endOfTimeMs)) return undefined
  // some engines parse the 31st of February as a day in March
  return isDay && new Date(ms).toISOString().slice(0, 10) !== text
    ? undefined
    : { ms, endMs: isDay ? ms + dayMs : ms }
}

const readMoment = (
  query: RangeQuery,
  param: "from" | "to",
): Effect.Effect<Moment | undefined, ApiError> => {
  const text = query[param]
  if (text === undefined) return Effect.succeed(undefined)
  const moment = momentOf(text)
  return moment
    ? Effect.succeed(moment)
    : Effect.fail(
        badQuery(param, "must be Unix seconds or a date as YYYY-MM-DD, from 1970 to 9999"),
      )
}

/**
 * Reads `?from=` and `?to=`. A date as `to` includes the whole day; a second as `to` is exclusive.
 */
export const readRange = (query: RangeQuery): Effect.Effect<Partial<Range>, ApiError> =>
  Effect.gen(function* () {
    const from = yield* readMoment(query, "from")
    const to = yield* readMoment(query, "to")
    // a date as `to` ends with its day
    if (from && to && from.ms > Math.max(to.ms, to.endMs - 1))
      return yield* badQuery("from", "must not be after `to`")
    return { ...(from && { fromMs: from.ms }), ...(to && { toMs: to.endMs }) }
  })

/** Reads the same parameters; by default the range ends now and begins 30 days before its end. */
export const readRecentRange = (query: RangeQuery, nowMs: number): Effect.Effect<Range, ApiError> =>
  Effect.flatMap(readRange(query), ({ fromMs, toMs = nowMs + 1 }) => {
    const from = fromMs ?? Math.max(0, Math.floor((toMs - defaultDays * dayMs) / hourMs) * hourMs)
    return from > toMs
      ? Effect.fail(badQuery("from", "must not be after `to`"))
      : Effect.succeed({ fromMs: from, toMs })
  })
