import { Effect, Schema } from "effect"
import {
  type ApiError,
  atMostCharacters,
  badQuery,
  type Call,
  defineEndpoint,
  freePlan,
  type Json,
  type WhenStarted,
  wordQuery,
} from "../../../core/index.ts"
import type { LedgerDeps } from "../deps.ts"
import { readErrors } from "./error-rows.ts"
import {
  type LatencyRow,
  percentilesOf,
  readLatency,
  steps,
  type TimelineQuery,
} from "./latency-rows.ts"
import { accountQuery, readAccount } from "./query.ts"
import { rangeQuery, readRecentRange } from "./range.ts"

/** Hours are read call by call. */
const mostHours = 72
const mostDays = 3_700
const hourMs = 3_600_000

const Query = Schema.Struct({
  ...rangeQuery,
  account: accountQuery,
  mode: wordQuery(["live", "test"]),
  step: wordQuery(steps),
  model: Schema.optionalKey(
    Schema.String.check(atMostCharacters(200)).annotate({ description: "Calls of this model." }),
  ),
})

const read = (
  { caller, query }: Call<Json, typeof Query.Type>,
  nowMs: number,
): Effect.Effect<TimelineQuery, ApiError> =>
  Effect.gen(function* () {
    const account = yield* readAccount(query, caller)
    const range = yield* readRecentRange(query, nowMs)
    const hours = (range.toMs - range.fromMs) / hourMs
    if (hours > (query.step === "hour" ? mostHours : mostDays * 24))
      return yield* badQuery(
        "from",
        `must be at most ${query.step === "hour" ? `${mostHours} hours` : `${mostDays} days`} before \`to\``,
      )
    const { mode, step, model } = query
    return { account, ...range, mode, step, model }
  })

const at = Schema.Int.annotate({ description: "Begin of the day or hour (UTC), Unix seconds." })
const Took = Schema.NullOr(
  Schema.Struct({ median: Schema.Finite, p95: Schema.Finite }).annotate({
    description: "Milliseconds, at most 10 % off; null where nothing was measured.",
  }),
)
const latency = {
  calls: Schema.Int.annotate({ description: "That used a model and went well." }),
  duration_ms: Took,
  first_token_ms: Took,
}
const LatencyReply = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.Struct({ at, ...latency })),
  all: Schema.Struct(latency).annotate({ description: "Of the whole range." }),
}).annotate({ identifier: "Latency" })

const ErrorsReply = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.Struct({ at, code: Schema.String, requests: Schema.Int })),
}).annotate({ identifier: "ErrorCounts" })

const toLatency = (rows: readonly LatencyRow[]) => ({
  calls: rows.reduce((sum, { totals }) => sum + totals, 0),
  duration_ms: percentilesOf(rows, "totals") ?? null,
  first_token_ms: percentilesOf(rows, "firsts") ?? null,
})

const toTimeline = (rows: readonly LatencyRow[]): Json => {
  const byStep = new Map<number, LatencyRow[]>()
  for (const row of rows) {
    const of = byStep.get(row.at)
    if (of) of.push(row)
    else byStep.set(row.at, [row])
  }
  const data = [...byStep].map(([at, of]) => ({ at, ...toLatency(of) }))
  return { object: "list", data, all: toLatency(rows) }
}

const common = {
  method: "GET",
  access: "session",
  body: "none",
  maxBodyBytes: 0,
  query: Query,
} as const

export const latencyEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.latency",
    summary:
      "How long calls took, whole and to their first token: median and 95th percentile by `step`, a UTC day or (for up to three days) hour. Counts calls that used a model and went well, without lines of batches.",
    path: "/dashboard/latency",
    reply: LatencyReply,
    plan: (call) =>
      Effect.gen(function* () {
        const { database, clock, drained } = yield* started
        const asked = yield* read(call, clock.nowMs())
        const rows = Effect.andThen(drained, readLatency(database, asked))
        return freePlan(Effect.map(rows, (found) => ({ status: 200, json: toTimeline(found) })))
      }),
  })

export const errorsEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.errors",
    summary:
      "How many requests failed or were refused, by `step` and error code. `client_closed`: the client left; `expired`: the server that ran the call went away.",
    path: "/dashboard/errors",
    reply: ErrorsReply,
    plan: (call) =>
      Effect.gen(function* () {
        const { database, clock, flushRefused } = yield* started
        const asked = yield* read(call, clock.nowMs())
        const rows = Effect.andThen(flushRefused, readErrors(database, asked))
        return freePlan(
          Effect.map(rows, (data) => ({ status: 200, json: { object: "list", data } })),
        )
      }),
  })
