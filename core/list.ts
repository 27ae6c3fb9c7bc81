import { Effect, Schema } from "effect"
import { withDefault } from "./decode.ts"
import { type ApiError, apiError, type PortError } from "./errors.ts"

/**
 * The parameters of a list request. Lists are newest first; the cursor is the id of the last item
 * seen.
 */
export interface Page {
  readonly limit: number
  /** The id of the last item that the caller has seen. */
  readonly after?: string
}

const defaultLimit = 20
const maxLimit = 100

export const badQuery = (param: string, rule: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${rule}`, { param })

/** Ids are made by this server: anything else names nothing and is refused before the database. */
export const isId = (text: string): boolean => /^[\x21-\x7e]{1,100}$/.test(text)

export const wordOf = <const Words extends readonly string[]>(words: Words) =>
  Schema.Literals(words).annotate({ message: `must be one of ${words.join(", ")}` })

/** One of `words`, the first by default. */
export const wordQuery = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  withDefault(wordOf(words), words[0] as Words[number])

const limitMessage = `must be a whole number from 1 to ${maxLimit}`

/** The parameters of every list, to spread into an endpoint's `query`. */
export const pageQuery = {
  limit: withDefault(
    Schema.Int.check(
      Schema.isBetween({ minimum: 1, maximum: maxLimit }, { message: limitMessage }),
    ).annotate({ description: "How many items at most." }),
    defaultLimit,
  ),
  after: Schema.optionalKey(
    Schema.String.annotate({
      description: "The id of the last item seen: the list goes on behind it.",
    }),
  ),
}
/** The `query` of a list without filters. */
export const PageQuery = Schema.Struct(pageQuery)

const unknownAfter = () => badQuery("after", "there is no such object on this list")

/**
 * Returns the position of the item that `after` names, or 400 when it is on no list of this caller.
 */
export const placeOf = <A>(
  after: string | undefined,
  find: (id: string) => Effect.Effect<A | undefined, PortError>,
): Effect.Effect<A | undefined, ApiError | PortError> => {
  if (after === undefined) return Effect.succeed(undefined)
  if (!isId(after)) return Effect.fail(unknownAfter())
  return Effect.flatMap(find(after), (place) =>
    place === undefined ? Effect.fail(unknownAfter()) : Effect.succeed(place),
  )
}

export const listSchema = <S extends Schema.Top>(item: S, identifier: string) =>
  Schema.Struct({
    object: Schema.Literal("list"),
    data: Schema.Array(item),
    has_more: Schema.Boolean,
    first_id: Schema.NullOr(Schema.String),
    last_id: Schema.NullOr(Schema.String),
  }).annotate({ identifier })

/** Builds one page. Query `limit + 1` rows: an extra row means that there are more. */
export const firstOf = <Row>(rows: readonly Row[], { limit }: Page) => ({
  rows: rows.slice(0, limit),
  hasMore: rows.length > limit,
})

export const toList = <Item extends { readonly id: string }>(
  data: readonly Item[],
  hasMore: boolean,
) => ({
  object: "list",
  data,
  has_more: hasMore,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})
