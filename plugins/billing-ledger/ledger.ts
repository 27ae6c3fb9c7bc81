import { Effect } from "effect"
import { sql } from "kysely"
import type { ChildCalls, Clock, Database, Ledger, PortError } from "../../core/index.ts"
import { verifyLedger } from "./proof/verify.ts"
import type { Settings } from "./settings.ts"
import { usageSums } from "./usage-sums.ts"

interface ChildrenRow {
  readonly parent_id: string
  readonly open: bigint
  readonly cost_micros: bigint
}

/** Counts the children of all parents in one statement, so at one moment. */
const childrenOf = (
  database: Database,
  parents: readonly string[],
): Effect.Effect<ReadonlyMap<string, ChildCalls>, PortError> =>
  Effect.map(
    database.run(() =>
      sql<ChildrenRow>`
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

/**
 * What the command line and other plugins ask of the ledger. Reports sum live calls only, as test
 * keys cost nothing.
 */
export const makeLedger = (
  database: Database,
  clock: Clock,
  { leaseMs, sweepMs }: Pick<Settings, "leaseMs" | "sweepMs">,
): Ledger => ({
  verify: Effect.suspend(() =>
    verifyLedger(database, { now: new Date(clock.nowMs()), leaseMs, sweepMs }),
  ),
  children: (parents) => childrenOf(database, parents),
  report: (query) =>
    Effect.map(
      Effect.suspend(() => usageSums(database, { ...query, mode: "live", nowMs: clock.nowMs() })),
      (sums) =>
        sums.map(({ groups, ...sum }) => ({ ...sum, groups: groups.map((group) => group ?? "") })),
    ),
})
