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
  /** Releases the lease; the next sweep of any replica expires the calls that are still open. */
  readonly release: Effect.Effect<void, PortError>
}

const callsPerStatement = 500

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
  const expireSome = (now: Date) => {
    const over = sql`
      SELECT json_agg(json_build_object('id', id, 'outcome', 'expired')) FROM (
        SELECT id FROM ledger_call c WHERE state = 'open'
          AND (expires_at <= ${now} OR NOT EXISTS (SELECT 1 FROM ledger_replica r WHERE r.id = c.replica_id AND r.lease_until > ${now}))
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
    ),
    sweep: Effect.gen(function* () {
      // one time for the whole sweep: a lease that ends meanwhile is left to the next sweep
      const now = new Date(clock.nowMs())
      let total = 0
      while (true) {
        const closed = yield* expireSome(now)
        total += closed
        if (closed < callsPerStatement) break
      }
      yield* run(() => sql`DELETE FROM ledger_replica WHERE lease_until <= ${now}`)
      return total
    }),
    release: run(
      () =>
        sql`UPDATE ledger_replica SET lease_until = ${new Date(clock.nowMs())} WHERE id = ${id}`,
    ),
  }
}
