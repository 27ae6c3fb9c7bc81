import { Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, PortError } from "../../core/index.ts"

export interface Replica {
  /** Renews the lease. */
  readonly beat: Effect.Effect<void, PortError>
  /** Expires open calls whose replica has no lease any more, and those whose own time is over, whoever runs them. Answers how many. */
  readonly sweep: Effect.Effect<number, PortError>
  /** Gives the lease up; what is open then is expired by the next sweep of anybody. */
  readonly leave: Effect.Effect<void, PortError>
}

const callsPerStatement = 500

/**
 * Who is alive. States of a replica: (no row) -> leased -> (lease over, or given up: dead) -> (no row: swept) | leased (it was only slow).
 * Its calls may settle late even after they expired.
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
    beat: run(
      () =>
        sql`INSERT INTO ledger_replica (id, started_at, lease_until) VALUES (${id}, ${new Date(clock.nowMs())}, ${new Date(clock.nowMs() + leaseMs)}) ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`,
    ),
    sweep: Effect.gen(function* () {
      // the same for all of it: a lease that ends meanwhile is the next sweep's
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
    leave: run(
      () =>
        sql`UPDATE ledger_replica SET lease_until = ${new Date(clock.nowMs())} WHERE id = ${id}`,
    ),
  }
}
