import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"

/** A batch that no worker has a lease of. */
export interface Candidate {
  readonly id: string
  readonly tenant: string
}

export interface Slots {
  /** Number of batches that run here, by tenant. */
  readonly running: ReadonlyMap<string, number>
  /** How many more may run, and how many of one tenant. */
  readonly free: number
  readonly perTenant: number
}

/**
 * The tenant with the fewest batches is next; of one tenant the oldest batch, as `candidates` come
 * in order of creation.
 */
export const chooseBatches = (
  candidates: readonly Candidate[],
  { running, free, perTenant }: Slots,
): readonly Candidate[] => {
  const counts = new Map(running)
  const countOf = ({ tenant }: Candidate) => counts.get(tenant) ?? 0
  const left = [...candidates]
  const chosen: Candidate[] = []
  while (chosen.length < free) {
    let best: Candidate | undefined
    for (const one of left)
      if (countOf(one) < perTenant && (!best || countOf(one) < countOf(best))) best = one
    if (!best) return chosen
    left.splice(left.indexOf(best), 1)
    counts.set(best.tenant, countOf(best) + 1)
    chosen.push(best)
  }
  return chosen
}

/**
 * The tenant that gives up a slot for a tenant that has none: the one with the most, if it has more
 * than one.
 */
export const whoYields = (
  candidates: readonly Candidate[],
  running: ReadonlyMap<string, number>,
): string | undefined => {
  if (!candidates.some(({ tenant }) => !running.has(tenant))) return undefined
  const [most] = [...running].sort(([, a], [, b]) => b - a)
  return most && most[1] > 1 ? most[0] : undefined
}

/**
 * A new batch stays `validating` for this part of a poll, so that a client that fetches it at once
 * sees that.
 */
const restShare = 5

/** The oldest batches of each tenant without a lease, up to `perTenant`, in order of creation. */
export const waitingBatches = (
  { database, clock, limits }: BatchDeps,
  perTenant: number,
): Effect.Effect<readonly Candidate[], PortError> => {
  const now = new Date(clock.nowMs())
  const query = sql<Candidate>`
    SELECT id, tenant FROM (
      SELECT id, seq, mode || ' ' || account AS tenant, row_number() OVER (PARTITION BY account, mode ORDER BY seq) AS place FROM batches_batch
      WHERE ended_at IS NULL AND (lease_until IS NULL OR lease_until <= ${now}) AND created_at <= ${new Date(now.getTime() - limits.pollMs / restShare)}
    ) waiting WHERE place <= ${perTenant} ORDER BY seq`
  return Effect.map(
    database.run(() => query.execute(database.queries<BatchTables>())),
    ({ rows }) => rows,
  )
}

/**
 * Takes the lease with the next epoch, and voids the calls that the last worker left open.
 * Undefined: another worker was first.
 */
export const claimBatch = (
  { database, billing, clock, limits }: BatchDeps,
  id: string,
): Effect.Effect<BatchRow | undefined, PortError> =>
  database.transaction((tx) =>
    Effect.gen(function* () {
      const now = new Date(clock.nowMs())
      const row = yield* database.run(() =>
        database
          .queries<BatchTables>(tx)
          .updateTable("batches_batch")
          .set((eb) => ({
            epoch: eb("epoch", "+", 1),
            lease_until: new Date(now.getTime() + limits.leaseMs),
          }))
          .where("id", "=", id)
          .where("ended_at", "is", null)
          .where((eb) => eb.or([eb("lease_until", "is", null), eb("lease_until", "<=", now)]))
          .returningAll()
          .executeTakeFirst(),
      )
      if (row) yield* billing.voidChildren(id, tx)
      return row
    }),
  )
