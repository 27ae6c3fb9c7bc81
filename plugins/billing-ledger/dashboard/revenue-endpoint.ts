import { Effect, Schema, Stream } from "effect"
import {
  defineEndpoint,
  formatRupiah,
  freePlan,
  type Json,
  type PortError,
  type Reply,
  rupiahNumber,
  type WhenStarted,
  wordQuery,
} from "../../../core/index.ts"
import { csvHeaders, csvLine, csvType, number, text } from "../csv.ts"
import type { LedgerDeps } from "../deps.ts"
import {
  batchRevenue,
  type Credit,
  type CreditKind,
  creditKinds,
  creditSums,
  type RevenueGroup,
  type RevenueRange,
  type RevenueSum,
  revenueSums,
} from "../revenue-sums.ts"
import { rangeQuery, readRecentRange } from "./range.ts"

const maxAccounts = { json: 50, csv: 100_000 }

const sumFields = {
  requests: Schema.Int,
  charged_idr: Schema.Finite.annotate({ description: "What balances paid." }),
}
const creditField = Schema.Struct({ entries: Schema.Int, idr: Schema.Finite })
const named = (name: Schema.Top) => Schema.Array(Schema.Struct({ name, ...sumFields }))

export const RevenueReply = Schema.Struct({
  object: Schema.Literal("revenue"),
  from: Schema.Int.annotate({ description: "Unix seconds." }),
  to: Schema.Int.annotate({ description: "Unix seconds, exclusive." }),
  total: Schema.Struct(sumFields),
  batch_idr: Schema.Finite.annotate({ description: "The part that lines of batches paid." }),
  paying_accounts: Schema.Int.annotate({ description: "Accounts that paid anything." }),
  credit: Schema.Struct({
    free_credit: creditField,
    grant: creditField,
    top_up: creditField,
    correction: creditField.annotate({ description: "Taken out of balances again." }),
  }),
  days: named(Schema.String.annotate({ description: "YYYY-MM-DD (UTC)." })),
  models: named(
    Schema.NullOr(Schema.String).annotate({ description: "Null: calls without a model." }),
  ),
  endpoints: named(Schema.String),
  accounts: named(Schema.String.annotate({ description: "Id of the account." })).annotate({
    description: `The ${maxAccounts.json} that paid the most.`,
  }),
}).annotate({ identifier: "Revenue" })

const RevenueQuery = Schema.Struct({ ...rangeQuery, format: wordQuery(["json", "csv"]) })

const toSum = (sum: RevenueSum | undefined) => ({
  requests: sum?.requests ?? 0,
  charged_idr: rupiahNumber(sum?.chargedMicros ?? 0n),
})

const toCredit = (credit: ReadonlyMap<CreditKind, Credit>): Json =>
  Object.fromEntries(
    creditKinds.map((kind) => {
      const { entries = 0, micros = 0n } = credit.get(kind) ?? {}
      return [kind, { entries, idr: rupiahNumber(micros) }]
    }),
  )

const jsonOf = ({ database }: LedgerDeps, range: RevenueRange): Effect.Effect<Reply, PortError> =>
  Effect.gen(function* () {
    const [sums, batchMicros, credit] = yield* Effect.all(
      [
        revenueSums(database, range, maxAccounts.json),
        batchRevenue(database, range),
        creditSums(database, range),
      ],
      { concurrency: 3 },
    )
    const of = (group: RevenueGroup) => sums.filter((sum) => sum.group === group)
    const list = (group: RevenueGroup): Json =>
      of(group).map((sum) => ({ name: sum.name, ...toSum(sum) }))
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: {
        object: "revenue",
        from: Math.floor(range.fromMs / 1000),
        to: Math.ceil(range.toMs / 1000),
        total: toSum(of("total")[0]),
        batch_idr: rupiahNumber(batchMicros),
        paying_accounts: of("account")[0]?.paying ?? 0,
        credit: toCredit(credit),
        days: list("day"),
        models: list("model"),
        endpoints: list("endpoint"),
        accounts: list("account"),
      },
    }
  })

const csvHead = "group,name,requests,charged_idr\r\n"

const csvOf = ({ database }: LedgerDeps, range: RevenueRange): Effect.Effect<Reply, PortError> =>
  Effect.map(revenueSums(database, range, maxAccounts.csv), (sums) => {
    const lines = sums.map((sum) =>
      csvLine([
        text(sum.group),
        text(sum.name),
        number(sum.requests),
        number(formatRupiah(sum.chargedMicros)),
      ]),
    )
    return {
      status: 200,
      headers: csvHeaders("revenue"),
      mediaType: csvType,
      bytes: Stream.succeed(new TextEncoder().encode([csvHead, ...lines].join(""))),
    }
  })

export const revenueEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    id: "admin.revenue",
    summary:
      "What live calls of all accounts were charged between `from` and `to`, by day, model, endpoint and account, and the credit that was given; `format=csv` has all accounts.",
    method: "GET",
    path: "/admin/revenue",
    access: "admin",
    body: "none",
    maxBodyBytes: 0,
    reply: RevenueReply,
    mediaTypes: [csvType],
    query: RevenueQuery,
    plan: ({ query }) =>
      Effect.gen(function* () {
        const deps = yield* started
        const nowMs = deps.clock.nowMs()
        const range = { ...(yield* readRecentRange(query, nowMs)), nowMs }
        const read = query.format === "csv" ? csvOf : jsonOf
        return freePlan(Effect.andThen(deps.flushRefused, read(deps, range)))
      }),
  })
