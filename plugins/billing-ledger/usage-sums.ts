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
  /**
   * In the order of `groupBy`; a day is YYYY-MM-DD (UTC). Null: calls without a model, or without a
   * key.
   */
  readonly groups: readonly (string | null)[]
  readonly requests: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: Micros
}

/**
 * The stored column of a group, and the expression that shows it. COLLATE "C" compares bytes, so
 * that the order does not depend on the server's locale.
 */
const columnsOf: Readonly<
  Record<
    UsageGroup,
    {
      readonly kept: RawBuilder<unknown>
      readonly shown: (kept: RawBuilder<unknown>) => RawBuilder<unknown>
    }
  >
> = {
  account: { kept: sql`account_id`, shown: (id) => sql`${id} COLLATE "C"` },
  day: {
    kept: sql`date_bin('1 day', at, '1970-01-01 00:00:00Z')`,
    shown: (at) => sql`(${at} AT TIME ZONE 'UTC')::date`,
  },
  // calls of dashboard sessions have no key; they are stored under an id of their session
  key: {
    kept: sql`key_id`,
    shown: (id) =>
      sql`CASE WHEN starts_with(${id}, 'session:') THEN NULL ELSE ${id} COLLATE "C" END`,
  },
  model: { kept: sql`model`, shown: (id) => sql`nullif(${id}, '') COLLATE "C"` },
  endpoint: { kept: sql`endpoint`, shown: (id) => sql`${id} COLLATE "C"` },
}

interface Row {
  readonly requests: bigint
  readonly errors: bigint
  readonly input_tokens: bigint
  readonly output_tokens: bigint
  readonly cost_micros: bigint
  readonly [group: `g${number}`]: string | null
}

const sums = (type: "numeric" | "bigint") => {
  const cast = sql.raw(`::${type}`)
  return ["requests", "errors", "input_tokens", "output_tokens", "cost_micros"].map(
    (name) => sql`coalesce(sum(${sql.ref(name)}), 0)${cast} AS ${sql.ref(name)}`,
  )
}

/**
 * Sums by stored columns first: the shown ones cost more to compute, and fewer rows are left then.
 */
const queryOf = ({ groupBy, maxRows, ...source }: UsageQuery): RawBuilder<Row> => {
  const names = groupBy.map((_, index) => sql.ref(`g${index}`))
  const from = sql`(${usageSource(source)}) ${usageColumns}`
  if (groupBy.length === 0) return sql<Row>`SELECT ${sql.join(sums("bigint"))} FROM ${from}`
  const kept = groupBy.map(
    (group, index) => sql`${columnsOf[group].kept} AS ${sql.ref(`g${index}`)}`,
  )
  const shown = groupBy.map(
    (group, index) =>
      sql`${columnsOf[group].shown(sql.ref(`g${index}`))} AS ${sql.ref(`g${index}`)}`,
  )
  const places = sql.join(groupBy.map((_, index) => sql.raw(String(index + 1))))
  const order = sql.join(groupBy.map((_, index) => sql`${sql.raw(String(index + 1))} NULLS LAST`))
  return sql<Row>`
    SELECT ${sql.join([...shown, ...sums("bigint")])} FROM (SELECT ${sql.join([...kept, ...sums("numeric")])} FROM ${from} GROUP BY ${sql.join(names)} HAVING sum(requests) > 0) s
    GROUP BY ${places} ORDER BY ${order} ${maxRows === undefined ? sql`` : sql`LIMIT ${maxRows}`}`
}

/** Sums by group, in the order of the groups; one row when there are none. */
export const usageSums = (
  database: Database,
  query: UsageQuery,
): Effect.Effect<readonly UsageSum[], PortError> =>
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
