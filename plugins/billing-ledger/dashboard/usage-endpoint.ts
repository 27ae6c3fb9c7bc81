import { Effect, Schema, Stream } from "effect"
import {
  type ApiError,
  badQuery,
  type Call,
  defineEndpoint,
  formatRupiah,
  freePlan,
  type Json,
  type PortError,
  type Reply,
  rupiahNumber,
  type WhenStarted,
  withDefault,
  wordQuery,
} from "../../../core/index.ts"
import { csvHeaders, csvLine, csvType, number, text } from "../csv.ts"
import type { LedgerDeps } from "../deps.ts"
import { type UsageSum, usageSums } from "../usage-sums.ts"
import { accountQuery, readAccount } from "./query.ts"
import { type Range, rangeQuery, readRecentRange } from "./range.ts"

const groups = ["day", "key", "model", "endpoint"] as const
type Group = (typeof groups)[number]

/** More rows would take long and nobody would read them. */
const maxRows = { json: 10_000, csv: 100_000 }

const groupValue = (what: string) =>
  Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ description: what }))

export const UsageReply = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      day: groupValue("YYYY-MM-DD (UTC)"),
      key: groupValue("Id of the API key"),
      model: groupValue("Null for calls without a model"),
      endpoint: groupValue("Id of the endpoint"),
      requests: Schema.Int,
      errors: Schema.Int,
      input_tokens: Schema.Int,
      output_tokens: Schema.Int,
      cost_idr: Schema.Finite,
    }),
  ),
  has_more: Schema.Literal(false),
  first_id: Schema.Null,
  last_id: Schema.Null,
}).annotate({ identifier: "Usage" })

interface Asked extends Range {
  readonly account: string
  readonly groupBy: readonly Group[]
  readonly mode: "live" | "test"
  readonly format: "json" | "csv"
}

const UsageQuery = Schema.Struct({
  ...rangeQuery,
  account: accountQuery,
  group_by: withDefault(
    Schema.String.annotate({ description: `Some of ${groups.join(",")}, with commas between.` }),
    "",
  ),
  mode: wordQuery(["live", "test"]),
  format: wordQuery(["json", "csv"]),
})

const readGroups = (group_by: string): Effect.Effect<readonly Group[], ApiError> => {
  const names = group_by === "" ? [] : group_by.split(",")
  const known = groups.filter((group) => names.includes(group))
  if (known.length !== names.length)
    return Effect.fail(
      badQuery("group_by", `must be some of ${groups.join(",")}, each once, with commas between`),
    )
  return Effect.succeed(names as Group[])
}

const read = (
  { caller, query }: Call<Json, typeof UsageQuery.Type>,
  nowMs: number,
): Effect.Effect<Asked, ApiError> =>
  Effect.gen(function* () {
    const { mode, format } = query
    return {
      account: yield* readAccount(query, caller),
      ...(yield* readRecentRange(query, nowMs)),
      groupBy: yield* readGroups(query.group_by),
      mode,
      format,
    }
  })

const toJson = (groupBy: readonly Group[], row: UsageSum): Json => ({
  ...Object.fromEntries(groupBy.map((group, index) => [group, row.groups[index] ?? null])),
  requests: row.requests,
  errors: row.errors,
  input_tokens: row.inputTokens,
  output_tokens: row.outputTokens,
  cost_idr: rupiahNumber(row.costMicros),
})

const csvOf = (groupBy: readonly Group[], rows: readonly UsageSum[]): string =>
  [
    csvLine(
      [...groupBy, "requests", "errors", "input_tokens", "output_tokens", "cost_idr"].map(text),
    ),
    ...rows.map((row) =>
      csvLine([
        ...row.groups.map(text),
        ...[row.requests, row.errors, row.inputTokens, row.outputTokens].map(number),
        number(formatRupiah(row.costMicros)),
      ]),
    ),
  ].join("")

const answer = (
  { database, clock, flushRefused }: LedgerDeps,
  { groupBy, format, ...source }: Asked,
): Effect.Effect<Reply, ApiError | PortError> =>
  Effect.gen(function* () {
    yield* flushRefused
    const rows = yield* usageSums(database, {
      ...source,
      groupBy,
      nowMs: clock.nowMs(),
      maxRows: maxRows[format] + 1,
    })
    if (rows.length > maxRows[format])
      return yield* badQuery(
        "group_by",
        `this comes to more than ${maxRows[format]} rows: take a shorter time or fewer groups`,
      )
    if (format === "json")
      return {
        status: 200,
        json: {
          object: "list",
          data: rows.map((row) => toJson(groupBy, row)),
          has_more: false,
          first_id: null,
          last_id: null,
        },
      }
    return {
      status: 200,
      headers: csvHeaders("usage"),
      mediaType: csvType,
      bytes: Stream.succeed(new TextEncoder().encode(csvOf(groupBy, rows))),
    }
  })

export const usageEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    id: "dashboard.usage",
    summary:
      "What calls came to, between `from` and `to`, summed by `group_by`; `format=csv` for a spreadsheet.",
    method: "GET",
    path: "/dashboard/usage",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: UsageReply,
    mediaTypes: [csvType],
    query: UsageQuery,
    plan: (call) =>
      Effect.gen(function* () {
        const deps = yield* started
        const asked = yield* read(call, deps.clock.nowMs())
        return freePlan(answer(deps, asked))
      }),
  })
