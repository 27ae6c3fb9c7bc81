import { Effect, Option, Schema, Stream } from "effect"
import {
  type ApiError,
  badQuery,
  type Call,
  type Database,
  defineEndpoint,
  freePlan,
  type Json,
  type Page,
  type PlanError,
  type PortError,
  pageQuery,
  type Reply,
  type WhenStarted,
  wordOf,
  wordQuery,
} from "../../../core/index.ts"
import { csvHeaders, csvType } from "../csv.ts"
import type { LedgerDeps } from "../deps.ts"
import { type EntryPosition, type EntryQuery, findPosition, readEntries } from "../entry-rows.ts"
import { accountQuery, readAccount } from "./query.ts"
import { rangeQuery, readRange } from "./range.ts"
import { EntryList, entryHead, entryLine, entryNumber, toEntry } from "./to-entry.ts"

const rowsAtOnce = 1_000

interface Asked {
  readonly filter: Omit<EntryQuery, "limit" | "after">
  readonly page: Page
  readonly format: "json" | "csv"
}

const LedgerQuery = Schema.Struct({
  ...pageQuery,
  ...rangeQuery,
  account: accountQuery,
  type: Schema.optionalKey(wordOf(["grant", "charge", "adjustment"])),
  format: wordQuery(["json", "csv"]),
})

const read = ({
  caller,
  query,
}: Call<Json, typeof LedgerQuery.Type>): Effect.Effect<Asked, ApiError> =>
  Effect.gen(function* () {
    const account = yield* readAccount(query, caller)
    const range = yield* readRange(query)
    return {
      filter: { account, ...range, type: query.type },
      page: query,
      format: query.format,
    }
  })

const positionOf = (
  database: Database,
  account: string,
  after: string | undefined,
): Effect.Effect<EntryPosition | undefined, ApiError | PortError> => {
  if (after === undefined) return Effect.succeed(undefined)
  const unknown = badQuery("after", "there is no such object on this list")
  const id = entryNumber(after)
  if (id === undefined) return Effect.fail(unknown)
  return Effect.flatMap(findPosition(database, account, id), (position) =>
    position === undefined ? Effect.fail(unknown) : Effect.succeed(position),
  )
}

const listOf = (
  { database }: LedgerDeps,
  { filter, page }: Asked,
): Effect.Effect<Reply, ApiError | PortError> =>
  Effect.gen(function* () {
    const after = yield* positionOf(database, filter.account, page.after)
    // one row more than asked for shows whether there are more
    const rows = yield* readEntries(database, { ...filter, after, limit: page.limit + 1 })
    const data = rows.slice(0, page.limit).map(toEntry)
    return {
      status: 200,
      json: {
        object: "list",
        data,
        has_more: rows.length > page.limit,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
      },
    }
  })

/**
 * Streams page by page, as the client reads. Pages go back in time and new rows are only added at
 * the newest end, so the pages fit together.
 */
const csvOf = ({ database }: LedgerDeps, { filter }: Asked): Reply<PlanError> => {
  const pieces = Stream.paginate(undefined as EntryPosition | undefined, (after) =>
    Effect.map(readEntries(database, { ...filter, after, limit: rowsAtOnce }), (rows) => {
      const next = rows.length < rowsAtOnce ? Option.none() : Option.fromNullishOr(rows.at(-1))
      return [[rows.map(entryLine).join("")], next] as const
    }),
  )
  const encoder = new TextEncoder()
  const bytes = Stream.succeed(entryHead).pipe(
    Stream.concat(pieces),
    Stream.map((piece) => encoder.encode(piece)),
  )
  return { status: 200, headers: csvHeaders("ledger"), mediaType: csvType, bytes }
}

export const ledgerEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    id: "dashboard.ledger",
    summary:
      "What came into the balance and what left it, the newest first; `format=csv` streams all of it.",
    method: "GET",
    path: "/dashboard/ledger",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: EntryList,
    mediaTypes: [csvType],
    query: LedgerQuery,
    plan: (call) =>
      Effect.map(Effect.all([started, read(call)]), ([deps, asked]) =>
        freePlan(
          Effect.andThen(
            deps.drained,
            asked.format === "csv" ? Effect.succeed(csvOf(deps, asked)) : listOf(deps, asked),
          ),
        ),
      ),
  })
