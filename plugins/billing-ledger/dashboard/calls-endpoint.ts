import { Effect, Schema } from "effect"
import {
  type ApiError,
  atMostCharacters,
  type Call,
  defineEndpoint,
  freePlan,
  type Json,
  listSchema,
  type PortError,
  pageQuery,
  placeOf,
  type Reply,
  rupiahNumber,
  toList,
  type WhenStarted,
  wordOf,
  wordQuery,
} from "../../../core/index.ts"
import type { LedgerDeps } from "../deps.ts"
import { callStatuses, findCallPosition, type LoggedCall, readCalls } from "./call-rows.ts"
import { accountQuery, readAccount } from "./query.ts"
import { rangeQuery, readRange } from "./range.ts"

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
  free: wordQuery(["hidden", "shown"]),
})
type CallsQuery = typeof CallsQuery.Type

const LoggedCallReply = Schema.Struct({
  id: Schema.String.annotate({
    description: "The call's id; of a request that was refused before, `refused_` and a number.",
  }),
  object: Schema.Literal("call"),
  request_id: Schema.String,
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
  endpoint: Schema.String,
  model: Schema.NullOr(Schema.String),
  key_id: Schema.NullOr(Schema.String),
  mode: Schema.Literals(["live", "test"]),
  status: Schema.Literals(callStatuses),
  http_status: Schema.NullOr(Schema.Int),
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  cost_idr: Schema.Finite,
  duration_ms: Schema.NullOr(Schema.Finite).annotate({
    description: "From admission to settlement.",
  }),
  batch_id: Schema.NullOr(Schema.String),
  has_receipt: Schema.Boolean,
  error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String })).annotate({
    description: "Of requests that were refused.",
  }),
}).annotate({ identifier: "LoggedCall" })

const toLogged = (row: LoggedCall) => ({
  id: row.id,
  object: "call" as const,
  request_id: row.requestId,
  created_at: Math.floor(row.at.getTime() / 1000),
  endpoint: row.endpoint,
  model: row.model,
  key_id: row.keyId.startsWith("session:") ? null : row.keyId,
  mode: row.mode,
  status: row.status,
  http_status: row.httpStatus,
  input_tokens: Number(row.inputTokens),
  output_tokens: Number(row.outputTokens),
  cost_idr: rupiahNumber(BigInt(row.costMicros)),
  duration_ms: row.durationMs === null ? null : Math.round(row.durationMs * 10) / 10,
  // the ingest of a knowledge file stands below its file
  batch_id: row.batch?.startsWith("batch-") ? row.batch : null,
  has_receipt: row.status !== "running" && row.code === null,
  error: row.code === null ? null : { code: row.code, message: row.message ?? "" },
})

const list = (
  { database, drained, flushRefused }: LedgerDeps,
  { caller, query }: Call<Json, CallsQuery>,
): Effect.Effect<Reply, ApiError | PortError> =>
  Effect.gen(function* () {
    const account = yield* readAccount(query, caller)
    const range = yield* readRange(query)
    yield* Effect.andThen(drained, flushRefused)
    const { model, key, status, limit } = query
    const after = yield* placeOf(query.after, (id) => findCallPosition(database, account, id))
    const filter = { account, ...range, model, key, status, showsFree: query.free === "shown" }
    const rows = yield* readCalls(database, { ...filter, after, limit: limit + 1 })
    const data = rows.slice(0, limit).map(toLogged)
    return { status: 200, json: toList(data, rows.length > limit) }
  })

export const callsEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    id: "dashboard.calls",
    summary:
      "The call log, newest first: what was asked, what became of it, what it cost. `free=shown`: also calls that use no model, such as lists. Of refused requests at most 20 in ten seconds are shown, for 30 days.",
    method: "GET",
    path: "/dashboard/calls",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: listSchema(LoggedCallReply, "CallLog"),
    query: CallsQuery,
    plan: (call) => Effect.map(started, (deps) => freePlan(list(deps, call))),
  })
