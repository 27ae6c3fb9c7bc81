import { Effect } from "effect"
import { sql } from "kysely"
import type { ChildCalls, Database, PortError } from "../../core/index.ts"

interface Row {
  readonly parent_id: string
  readonly open: bigint
  readonly cost_micros: bigint
}

/** One statement, so one moment. */
export const childrenOf = (
  database: Database,
  parents: readonly string[],
): Effect.Effect<ReadonlyMap<string, ChildCalls>, PortError> =>
  Effect.map(
    database.run(() =>
      sql<Row>`
        SELECT parent_id, count(*) FILTER (WHERE state = 'open') AS open, coalesce(sum(cost_micros) FILTER (WHERE state = 'settled'), 0)::bigint AS cost_micros
        FROM ledger_call WHERE parent_id = ANY(${parents}::text[]) GROUP BY parent_id`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) =>
      new Map(
        rows.map(({ parent_id, open, cost_micros }) => [
          parent_id,
          { open: Number(open), costMicros: cost_micros },
        ]),
      ),
  )
