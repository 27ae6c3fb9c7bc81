import { Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, PortError } from "../../core/index.ts"

export interface Replica {
  /** Renews the lease. */
  readonly renew: Effect.Effect<void, PortError>
  /**
   * Expires open calls whose replica holds no lease any more, and those beyond their own time,
   * whoever runs them. Returns the number of expired calls.
   */
  readonly sweep: Effect.Effect<number, PortError>
  /** The replicas whose lease is not over. */
  readonly living: Effect.Effect<ReadonlySet<string>, PortError>
  /** Releases the lease; the next sweep of any replica expires the calls that are still open. */
  readonly release: Effect.Effect<void, PortError>
}

const callsPerStatement = 500

/** Since when every renewal has succeeded: leases that ended before say nothing. */
const makeSteadiness = (clock: Clock, leaseMs: number) => {
  let sinceMs: number | undefined = 0
  let hasRenewed = false
  return {
    /** Undefined: the last renewal failed. */
    sinceMs: () => sinceMs,
    renewed: Effect.sync(() => {
      if (!hasRenewed || sinceMs === undefined) sinceMs = clock.nowMs()
      hasRenewed = true
    }),
    failed: Effect.sync(() => {
      sinceMs = undefined
    }),
    /**
     * What ended while the database was away waits until every living replica had the time to renew
     * its lease, and to settle what it had kept.
     */
    isOver: (column: "expires_at" | "lease_until", now: Date, steadySinceMs: number) => {
      const time = sql.ref(column)
      return now.getTime() - steadySinceMs >= leaseMs
        ? sql`${time} <= ${now}`
        : sql`${time} <= ${now} AND ${time} >= ${new Date(steadySinceMs)}`
    },
  }
}

/**
 * Leases of replicas. States: (no row) -> leased -> dead (lease over or released) -> (no row:
 * swept) | leased (it was only slow). Calls of a dead replica may still settle late after they
 * expired.
 */
export const makeReplica = (
  database: Database,
  clock: Clock,
  id: string,
  leaseMs: number,
): Replica => {
  const run = (query: () => ReturnType<typeof sql>) =>
    Effect.asVoid(database.run(() => query().execute(database.queries())))
  const { renewed, failed, sinceMs: steadySince, isOver } = makeSteadiness(clock, leaseMs)
  const expireSome = (now: Date, sinceMs: number) => {
    const over = sql`
      SELECT json_agg(json_build_object('id', id, 'outcome', 'expired')) FROM (
        SELECT id FROM ledger_call c WHERE state = 'open'
          AND (${isOver("expires_at", now, sinceMs)} OR NOT EXISTS (SELECT 1 FROM ledger_replica r WHERE r.id = c.replica_id AND NOT (${isOver("lease_until", now, sinceMs)})))
        ORDER BY account_id, id LIMIT ${callsPerStatement}) d`
    return Effect.map(
      database.run(() =>
        sql<{ closed: bigint }>`SELECT ledger_settle((${over}), ${now}) AS closed`.execute(
          database.queries(),
        ),
      ),
      ({ rows }) => Number(rows[0]?.closed ?? 0),
    )
  }
  return {
    renew: run(
      () =>
        sql`INSERT INTO ledger_replica (id, started_at, lease_until) VALUES (${id}, ${new Date(clock.nowMs())}, ${new Date(clock.nowMs() + leaseMs)}) ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`,
    ).pipe(
      Effect.tap(() => renewed),
      Effect.tapError(() => failed),
    ),
    sweep: Effect.gen(function* () {
      const sinceMs = steadySince()
      if (sinceMs === undefined) return 0
      // one time for the whole sweep: a lease that ends meanwhile is left to the next sweep
      const now = new Date(clock.nowMs())
      let total = 0
      while (true) {
        const closed = yield* expireSome(now, sinceMs)
        total += closed
        if (closed < callsPerStatement) break
      }
      yield* run(() => sql`DELETE FROM ledger_replica WHERE ${isOver("lease_until", now, sinceMs)}`)
      return total
    }),
    living: Effect.map(
      database.run(() =>
        sql<{
          id: string
        }>`SELECT id FROM ledger_replica WHERE lease_until > ${new Date(clock.nowMs())}`.execute(
          database.queries(),
        ),
      ),
      ({ rows }) => new Set(rows.map((row) => row.id)),
    ),
    release: run(
      () =>
        sql`UPDATE ledger_replica SET lease_until = ${new Date(clock.nowMs())} WHERE id = ${id}`,
    ),
  }
}
