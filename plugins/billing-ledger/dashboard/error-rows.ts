import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { TimelineQuery } from "./latency-rows.ts"

/** How many requests of one step ended with one code. */
export interface ErrorRow {
  /** Unix seconds, the begin of the step. */
  readonly at: number
  readonly code: string
  readonly requests: number
}

/** Calls that failed, by their codes, and refused requests; a range has all refusals of an hour that it cuts. */
export const readErrors = (
  database: Database,
  { account, mode, step, model, fromMs, toMs }: TimelineQuery,
): Effect.Effect<readonly ErrorRow[], PortError> => {
  const width = sql.raw(`interval '1 ${step}'`)
  const binned = (at: string) =>
    sql`extract(epoch FROM date_bin(${width}, ${sql.ref(at)}, '1970-01-01 00:00:00Z'))::float8`
  const ofModel = model === undefined ? sql`` : sql`AND model = ${model}`
  const query = sql<ErrorRow>`
    SELECT at, code, sum(requests)::float8 AS requests FROM (
      SELECT ${binned("admitted_at")} AS at, error_code AS code, count(*) AS requests FROM ledger_call
      WHERE account_id = ${account} AND admitted_at >= ${new Date(fromMs)} AND admitted_at < ${new Date(toMs)} AND error_code IS NOT NULL AND mode = ${mode} ${ofModel}
      GROUP BY 1, 2
      UNION ALL
      SELECT ${binned("hour")}, code, sum(requests) FROM ledger_refusal_code
      WHERE account_id = ${account} AND mode = ${mode} AND hour >= ledger_hour(${new Date(fromMs)}) AND hour < ${new Date(toMs)} ${ofModel}
      GROUP BY 1, 2
    ) e GROUP BY at, code ORDER BY at, code COLLATE "C"`
  return Effect.map(
    database.run(() => query.execute(database.queries())),
    ({ rows }) => rows,
  )
}
