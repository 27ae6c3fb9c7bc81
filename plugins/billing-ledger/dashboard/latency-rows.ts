import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { Range } from "./range.ts"

/** Buckets of time, in UTC. */
export const steps = ["day", "hour"] as const
export type Step = (typeof steps)[number]

export interface TimelineQuery extends Range {
  readonly account: string
  readonly mode: "live" | "test"
  readonly step: Step
  readonly model?: string | undefined
}

/** How many calls of one step took as long as one bucket says, whole and to the first token. */
export interface LatencyRow {
  /** Unix seconds, the begin of the step. */
  readonly at: number
  readonly bucket: number
  readonly totals: number
  readonly firsts: number
}

const ofModel = ({ model }: TimelineQuery) =>
  model === undefined ? sql`` : sql`AND model = ${model}`

/** Days are counted as calls end (see call-outcomes.sql); a range has all of a day that it cuts. */
const days = (query: TimelineQuery) => sql<LatencyRow>`
  SELECT extract(epoch FROM day)::float8 AS at, bucket, sum(totals)::float8 AS totals, sum(firsts)::float8 AS firsts
  FROM ledger_latency
  WHERE account_id = ${query.account} AND mode = ${query.mode} AND day >= (${new Date(query.fromMs)}::timestamptz AT TIME ZONE 'UTC')::date
    AND day < ${new Date(query.toMs)}::timestamptz AT TIME ZONE 'UTC' ${ofModel(query)}
  GROUP BY day, bucket ORDER BY day, bucket`

interface HourRow {
  readonly at: number
  readonly total: number
  readonly first: number | null
  readonly calls: number
}

/** Hours are few, so they are read from the calls. */
const hours = (query: TimelineQuery) => sql<HourRow>`
  SELECT extract(epoch FROM hour)::float8 AS at, total, first, calls FROM (
    SELECT ledger_hour(admitted_at) AS hour, ledger_bucket(total_ms) AS total, ledger_bucket(first_ms) AS first, count(*)::float8 AS calls
    FROM ledger_call
    WHERE account_id = ${query.account} AND mode = ${query.mode} AND admitted_at >= ${new Date(query.fromMs)} AND admitted_at < ${new Date(query.toMs)}
      AND total_ms IS NOT NULL AND state = 'settled' AND http_status < 400 AND counts = 'all' AND ${query.model === undefined ? sql`model IS NOT NULL` : sql`model = ${query.model}`}
    GROUP BY 1, 2, 3
  ) h ORDER BY hour`

const toRows = ({ at, total, first, calls }: HourRow): readonly LatencyRow[] => [
  { at, bucket: total, totals: calls, firsts: 0 },
  ...(first === null ? [] : [{ at, bucket: first, totals: 0, firsts: calls }]),
]

export const readLatency = (
  database: Database,
  query: TimelineQuery,
): Effect.Effect<readonly LatencyRow[], PortError> =>
  query.step === "day"
    ? Effect.map(
        database.run(() => days(query).execute(database.queries())),
        ({ rows }) => rows,
      )
    : Effect.map(
        database.run(() => hours(query).execute(database.queries())),
        ({ rows }) => rows.flatMap(toRows),
      )

export interface Percentiles {
  readonly median: number
  readonly p95: number
}

/** The middle of a bucket: at most 10 % from any duration in it. */
const middleOf = (bucket: number): number => 1.2 ** (bucket + 0.5)

/** Undefined: nothing was counted. */
export const percentilesOf = (
  rows: readonly LatencyRow[],
  kind: "totals" | "firsts",
): Percentiles | undefined => {
  const counts = new Map<number, number>()
  for (const row of rows) counts.set(row.bucket, (counts.get(row.bucket) ?? 0) + row[kind])
  const sorted = [...counts].sort(([a], [b]) => a - b)
  const all = sorted.reduce((sum, [, count]) => sum + count, 0)
  if (all === 0) return undefined
  const at = (share: number) => {
    let below = 0
    const found = sorted.find(([, count]) => {
      below += count
      return below >= share * all
    })
    return Number(middleOf(found![0]).toPrecision(3))
  }
  return { median: at(0.5), p95: at(0.95) }
}
