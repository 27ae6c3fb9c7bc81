import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Settlement, Transaction } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import type { Hold } from "./lease.ts"
import type { LineResult } from "./run-line.ts"

/** `kept`. `dropped`: the batch was cancelled, so what had begun before is paid and nobody gets it. `lost`: another worker has the batch, and nothing was changed. */
export type Committed = "kept" | "dropped" | "lost"

interface Charge {
  readonly settlement: Settlement
  readonly begun: Date
}

const chargesOf = (results: readonly LineResult[]): readonly Charge[] =>
  results.flatMap(({ settlement, begunMs = 0 }) =>
    settlement ? [{ settlement, begun: new Date(begunMs) }] : [],
  )

/** The counters count only while the batch goes on; what its last lines cost comes to its bill in any case, unless they began after its end: another process may hear of that late. */
const count = (
  { database, clock, limits }: BatchDeps,
  { id, epoch }: Hold,
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

// lines of a file hold no line ends; an array would have every quote in them escaped and parsed again
const insert = (
  { database }: BatchDeps,
  { id }: Hold,
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

/** Counters, answers and money move together, or not at all. After a failure nobody knows whether they did: who goes on claims the batch anew. */
export const commitLines = (
  deps: BatchDeps,
  hold: Hold,
  results: readonly LineResult[],
): Effect.Effect<Committed, PortError> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const { rows } = yield* count(deps, hold, results, tx)
      const [row] = rows
      if (!row) return "lost"
      const { status, ended_at } = row
      if (status === "in_progress") yield* insert(deps, hold, results, tx)
      // the account's lock is taken last, and kept for a moment
      yield* deps.billing.settle(
        chargesOf(results).map(({ settlement, begun }) =>
          ended_at && begun > ended_at ? voided(settlement) : settlement,
        ),
        tx,
      )
      return status === "in_progress" ? "kept" : "dropped"
    }),
  )

/** What is not committed costs nothing. Whoever claims the batch next does the same, so a failure does no harm. */
export const giveBack = (deps: BatchDeps, results: readonly LineResult[]): Effect.Effect<void> =>
  Effect.ignore(deps.billing.settle(chargesOf(results).map(({ settlement }) => voided(settlement))))
