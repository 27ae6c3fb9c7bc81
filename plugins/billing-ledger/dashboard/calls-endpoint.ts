import { Effect, Option, Schema, Stream } from "effect"
import {
  type ApiError,
  atMostCharacters,
  type Call,
  defineEndpoint,
  freePlan,
  type Json,
  listSchema,
  type PlanError,
  type PortError,
  pageQuery,
  placeOf,
  type Reply,
  toList,
  type WhenStarted,
  wordOf,
  wordQuery,
} from "../../../core/index.ts"
import { csvHeaders, csvType } from "../csv.ts"
import type { LedgerDeps } from "../deps.ts"
import {
  type CallPosition,
  type CallQuery,
  callStatuses,
  findCallPosition,
  readCalls,
} from "./call-rows.ts"
import { accountQuery, readAccount } from "./query.ts"
import { rangeQuery, readRange } from "./range.ts"
import { callHead, callLine, LoggedCallReply, toLogged } from "./to-logged.ts"

const rowsAtOnce = 1_000
const maxName = 200
/** No NUL: PostgreSQL's texts can't hold it. */
const Name = Schema.String.check(atMostCharacters(maxName), Schema.isPattern(/^[^\0]*$/))
const name = (description: string) => Schema.optionalKey(Name.annotate({ description }))

const CallsQuery = Schema.Struct({
  ...pageQuery,
  ...rangeQuery,
  account: accountQuery,
  model: name("Calls of this model."),
  key: name("Calls of the key with this id."),
  status: Schema.optionalKey(wordOf(callStatuses)),
  code: name("Calls and refusals with this error code."),
  free: wordQuery(["hidden", "shown"]),
  format: wordQuery(["json", "csv"]),
})
type CallsQuery = typeof CallsQuery.Type

/**
 * Streams page by page, as the client reads. Pages go back in time, so that they fit together; a
 * refusal that is forgotten meanwhile is missing.
 */
const csvOf = ({ database }: LedgerDeps, filter: Omit<CallQuery, "limit">): Reply<PlanError> => {
  const pieces = Stream.paginate(undefined as CallPosition | undefined, (after) =>
    Effect.map(readCalls(database, { ...filter, after, limit: rowsAtOnce }), (rows) => {
      const next = rows.length < rowsAtOnce ? Option.none() : Option.fromNullishOr(rows.at(-1))
      return [[rows.map(callLine).join("")], next] as const
    }),
  )
  const encoder = new TextEncoder()
  const bytes = Stream.succeed(callHead).pipe(
    Stream.concat(pieces),
    Stream.map((piece) => encoder.encode(piece)),
  )
  return { status: 200, headers: csvHeaders("calls"), mediaType: csvType, bytes }
}

const list = (
  deps: LedgerDeps,
  { caller, query }: Call<Json, CallsQuery>,
): Effect.Effect<Reply<PlanError>, ApiError | PortError> =>
  Effect.gen(function* () {
    const { database, drained, flushRefused } = deps
    const account = yield* readAccount(query, caller)
    const range = yield* readRange(query)
    yield* Effect.andThen(drained, flushRefused)
    const { model, key, status, code, limit } = query
    const filter = {
      account,
      ...range,
      model,
      key,
      status,
      code,
      showsFree: query.free === "shown",
    }
    if (query.format === "csv") return csvOf(deps, filter)
    const after = yield* placeOf(query.after, (id) => findCallPosition(database, account, id))
    const rows = yield* readCalls(database, { ...filter, after, limit: limit + 1 })
    const data = rows.slice(0, limit).map(toLogged)
    return { status: 200, json: toList(data, rows.length > limit) }
  })

export const callsEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    id: "dashboard.calls",
    summary:
      "The call log, newest first: what was asked, what became of it, what it cost. `free=shown`: also calls that use no model, such as lists. Of refused requests at most 20 in ten seconds are shown, for 30 days. `format=csv` streams all of them.",
    method: "GET",
    path: "/dashboard/calls",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: listSchema(LoggedCallReply, "CallLog"),
    mediaTypes: [csvType],
    query: CallsQuery,
    plan: (call) => Effect.map(started, (deps) => freePlan(list(deps, call))),
  })
