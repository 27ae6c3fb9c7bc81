import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, Micros, PortError } from "../../core/index.ts"
import { type UsageSource, usageColumns, usageSource } from "./usage-source.ts"

export type UsageGroup = "account" | "day" | "key" | "model" | "endpoint"

export interface UsageQuery extends UsageSource {
  readonly groupBy: readonly UsageGroup[]
  readonly maxRows?: number
}

export interface UsageSum {
  /** In the order that was asked for; a day is YYYY-MM-DD (UTC). Null: a call without a model, or without a key. */
  readonly groups: readonly (string | null)[]
  readonly requests: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: Micros
}

// bytes are compared, so that the order does not depend on the server's locale
const expressions: Readonly<Record<UsageGroup, RawBuilder<unknown>>> = {
  account: sql`account_id COLLATE "C"`,
  day: sql`(at AT TIME ZONE 'UTC')::date`,
  // calls without a key are counted under an id of our own
  key: sql`CASE WHEN starts_with(key_id, 'session:') THEN NULL ELSE key_id COLLATE "C" END`,
  model: sql`nullif(model, '') COLLATE "C"`,
  endpoint: sql`endpoint COLLATE "C"`,
}

interface Row {
  readonly requests: bigint
  readonly errors: bigint
  readonly input_tokens: bigint
  readonly output_tokens: bigint
  readonly cost_micros: bigint
  readonly [group: `g${number}`]: string | null
}

const queryOf = ({ groupBy, maxRows, ...source }: UsageQuery): RawBuilder<Row> => {
  const columns = groupBy.map((group, index) => sql`${expressions[group]} AS ${sql.ref(`g${index}`)}`)
  const sums = ["requests", "errors", "input_tokens", "output_tokens", "cost_micros"].map((name) => sql`coalesce(sum(${sql.ref(name)}), 0)::bigint AS ${sql.ref(name)}`)
  const places = groupBy.map((_, index) => sql.raw(String(index + 1)))
  const grouping = places.length === 0 ? sql`` : sql`GROUP BY ${sql.join(places)} ORDER BY ${sql.join(places.map((place) => sql`${place} NULLS LAST`))}`
  return sql<Row>`SELECT ${sql.join([...columns, ...sums])} FROM (${usageSource(source)}) ${usageColumns} ${grouping} ${maxRows === undefined ? sql`` : sql`LIMIT ${maxRows}`}`
}

/** Sums by groups, sorted by them; without groups one row for all. */
export const usageSums = (database: Database, query: UsageQuery): Effect.Effect<readonly UsageSum[], PortError> =>
  Effect.map(
    database.run(() => queryOf(query).execute(database.queries())),
    ({ rows }) =>
      rows.map((row) => ({
        groups: query.groupBy.map((_, index) => row[`g${index}`] ?? null),
        requests: Number(row.requests),
        errors: Number(row.errors),
        inputTokens: Number(row.input_tokens),
        outputTokens: Number(row.output_tokens),
        costMicros: row.cost_micros,
      })),
  )
