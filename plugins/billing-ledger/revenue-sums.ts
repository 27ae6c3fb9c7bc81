import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, Micros, PortError } from "../../core/index.ts"
import { usageColumns, usageSource } from "./usage-source.ts"

const groups = ["total", "day", "model", "endpoint", "account"] as const
export type RevenueGroup = (typeof groups)[number]

export interface RevenueRange {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly nowMs: number
}

export interface RevenueSum {
  readonly group: RevenueGroup
  /** A day is YYYY-MM-DD (UTC); null: the total, or calls without a model. */
  readonly name: string | null
  readonly requests: number
  readonly chargedMicros: Micros
  /** How many of its group were charged something. */
  readonly paying: number
}

interface Row {
  readonly group: RevenueGroup
  readonly name: string | null
  readonly requests: bigint
  readonly charged: bigint
  readonly paying: bigint
}

/**
 * The rows of all accounts are read once and summed by pairs of columns; the sums of each column,
 * and the total, come from these, which are far fewer.
 */
const queryOf = (range: RevenueRange, maxAccounts: number): RawBuilder<Row> => {
  const summed = sql`sum(requests)::bigint AS requests, sum(charged)::bigint AS charged`
  return sql<Row>`
    WITH used AS (
      SELECT account_id, date_bin('1 day', at, '1970-01-01 00:00:00Z') AS day, model, endpoint, requests, cost_micros AS charged
      FROM (${usageSource({ ...range, mode: "live" })}) ${usageColumns}
    ), pairs AS (
      SELECT GROUPING(account_id) AS side, account_id, day, model, endpoint, ${summed}
      FROM used GROUP BY GROUPING SETS ((account_id, day), (model, endpoint))
    ), sums AS (
      SELECT CASE GROUPING(account_id, day) WHEN 3 THEN 'total' WHEN 1 THEN 'account' ELSE 'day' END AS "group",
        coalesce(account_id, to_char(day AT TIME ZONE 'UTC', 'YYYY-MM-DD')) COLLATE "C" AS name, ${summed}
      FROM pairs WHERE side = 0 GROUP BY GROUPING SETS ((), (account_id), (day))
      UNION ALL
      SELECT CASE GROUPING(model, endpoint) WHEN 1 THEN 'model' ELSE 'endpoint' END, coalesce(nullif(model, ''), endpoint) COLLATE "C", ${summed}
      FROM pairs WHERE side = 1 GROUP BY GROUPING SETS ((model), (endpoint))
    ), ranked AS (
      SELECT *, row_number() OVER (PARTITION BY "group" ORDER BY charged DESC, requests DESC, name) AS rank,
        count(*) FILTER (WHERE charged > 0) OVER (PARTITION BY "group") AS paying FROM sums WHERE requests > 0
    )
    SELECT "group", name, requests, charged, paying FROM ranked WHERE "group" <> 'account' OR rank <= ${maxAccounts}
    ORDER BY array_position(${[...groups]}::text[], "group"), CASE WHEN "group" = 'day' THEN name END, rank`
}

/** Without it a year of many accounts is sorted on the disk instead of hashed in memory. */
const moreMemory = sql`SET LOCAL work_mem = '64MB'`

/**
 * What live calls of all accounts came to, in total and by day, model, endpoint and account; days
 * in their order, the others by what was charged, the most first. Of accounts only the first
 * `maxAccounts`. Nothing at all where there were no calls.
 */
export const revenueSums = (
  database: Database,
  range: RevenueRange,
  maxAccounts: number,
): Effect.Effect<readonly RevenueSum[], PortError> =>
  Effect.map(
    database.transaction((tx) =>
      database.run(async () => {
        await moreMemory.execute(database.queries(tx))
        return queryOf(range, maxAccounts).execute(database.queries(tx))
      }),
    ),
    ({ rows }) =>
      rows.map(({ group, name, requests, charged, paying }) => ({
        ...{ group, name, requests: Number(requests) },
        ...{ chargedMicros: charged, paying: Number(paying) },
      })),
  )

/** The part of it that lines of batches were charged, by an index of their own. */
export const batchRevenue = (
  database: Database,
  { fromMs, toMs }: RevenueRange,
): Effect.Effect<Micros, PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ charged: bigint }>`
        SELECT coalesce(sum(cost_micros), 0)::bigint AS charged FROM ledger_call
        WHERE parent_id IS NOT NULL AND cost_micros > 0 AND admitted_at >= ${new Date(fromMs)} AND admitted_at < ${new Date(toMs)}`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => rows[0]?.charged ?? 0n,
  )

export const creditKinds = ["free_credit", "grant", "top_up", "correction"] as const
export type CreditKind = (typeof creditKinds)[number]

export interface Credit {
  readonly entries: number
  readonly micros: Micros
}

/**
 * What came into balances, or was taken out of them again, in the range. The kind is in the id of
 * the entry, which says what booked it.
 */
export const creditSums = (
  database: Database,
  { fromMs, toMs }: RevenueRange,
): Effect.Effect<ReadonlyMap<CreditKind, Credit>, PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ kind: CreditKind; entries: bigint; micros: bigint }>`
        SELECT CASE WHEN type = 'adjustment' THEN 'correction' WHEN starts_with(entry_id, 'free-credit:') THEN 'free_credit'
            WHEN starts_with(entry_id, 'topup_') THEN 'top_up' ELSE 'grant' END AS kind,
          count(*) AS entries, sum(amount_micros)::bigint AS micros
        FROM ledger_transfer WHERE type <> 'charge' AND at >= ${new Date(fromMs)} AND at < ${new Date(toMs)} GROUP BY 1`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) =>
      new Map(
        rows.map(({ kind, entries, micros }) => [kind, { entries: Number(entries), micros }]),
      ),
  )
