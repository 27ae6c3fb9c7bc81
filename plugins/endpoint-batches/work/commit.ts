import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Settlement, Transaction } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import type { Lease } from "./lease.ts"
import type { LineResult } from "./run-line.ts"

/**
 * `dropped`: the batch was cancelled, so lines that had begun before are paid, and their answers
 * are not stored. `lost`: another worker has the lease, and nothing was changed.
 */
export type Committed = "kept" | "dropped" | "lost"

interface Charge {
  readonly settlement: Settlement
  readonly begun: Date
}

const chargesOf = (results: readonly LineResult[]): readonly Charge[] =>
  results.flatMap(({ settlement, begunMs = 0 }) =>
    settlement ? [{ settlement, begun: new Date(begunMs) }] : [],
  )

/**
 * The counters change only while the batch is in progress. The cost of its last lines is added in
 * any case, unless they began after its end, of which this process may hear late.
 */
const count = (
  { database, clock, limits }: BatchDeps,
  { id, epoch }: Lease,
  results: readonly LineResult[],
  tx: Transaction,
) => {
  const completed = results.filter(({ ok }) => ok).length
  const failed = results.length - completed
  const charges = chargesOf(results)
  const costs = sql`unnest(${charges.map(({ settlement }) => String(settlement.costMicros))}::bigint[], ${charges.map(({ begun }) => begun)}::timestamptz[])`
  const whileItRuns = (more: number) =>
    sql<number>`CASE WHEN status = 'in_progress' THEN ${more}::int ELSE 0 END`
  return database.run(() =>
    sql<Pick<BatchRow, "status" | "ended_at">>`
      UPDATE batches_batch SET completed = completed + ${whileItRuns(completed)}, failed = failed + ${whileItRuns(failed)},
        cost_micros = cost_micros + (SELECT coalesce(sum(x.cost), 0)::bigint FROM ${costs} AS x(cost, begun) WHERE ended_at IS NULL OR x.begun <= ended_at), lease_until = ${new Date(clock.nowMs() + limits.leaseMs)}
      WHERE id = ${id} AND epoch = ${epoch} RETURNING status, ended_at`.execute(
      database.queries<BatchTables>(tx),
    ),
  )
}

// one text, cut at its line ends, of which a result has none: in an array every quote would be
// escaped, and parsed again
const insert = (
  { database }: BatchDeps,
  { id }: Lease,
  results: readonly LineResult[],
  tx: Transaction,
) =>
  database.run(() =>
    sql`
      INSERT INTO batches_line (batch_id, line, ok, body) SELECT ${id}, * FROM ROWS FROM (
        unnest(${results.map(({ line }) => line)}::int[], ${results.map(({ ok }) => ok)}::bool[]), string_to_table(${results.map(({ body }) => body).join("\n")}, E'\\n'))`.execute(
      database.queries<BatchTables>(tx),
    ),
  )

const voided = (settlement: Settlement): Settlement => ({
  ...settlement,
  outcome: "voided",
  costMicros: 0n,
  httpStatus: 500,
})

/**
 * Commits counters, answers and settlements together. After a failure it is unknown whether they
 * are committed: the next worker's claim finds out.
 */
export const commitLines = (
  deps: BatchDeps,
  lease: Lease,
  results: readonly LineResult[],
): Effect.Effect<Committed, PortError> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const { rows } = yield* count(deps, lease, results, tx)
      const [row] = rows
      if (!row) return "lost"
      const { status, ended_at } = row
      if (status === "in_progress") yield* insert(deps, lease, results, tx)
      // takes the account's lock, so it comes last
      yield* deps.billing.settle(
        chargesOf(results).map(({ settlement, begun }) =>
          ended_at && begun > ended_at ? voided(settlement) : settlement,
        ),
        tx,
      )
      return status === "in_progress" ? "kept" : "dropped"
    }),
  )

/**
 * Lines that are not committed cost nothing. A failure is ignored, as the next claim of the batch
 * voids them, too.
 */
export const voidLines = (deps: BatchDeps, results: readonly LineResult[]): Effect.Effect<void> =>
  Effect.ignore(deps.billing.settle(chargesOf(results).map(({ settlement }) => voided(settlement))))
