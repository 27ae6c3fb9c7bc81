import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Transaction } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { PreflightResult } from "../preflight/preflight.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import type { Cancellation } from "./cancellation.ts"
import { isOutage } from "./outage.ts"

/**
 * A worker's claim on a batch until `lease_until`. The epoch is its fencing token: it rises with
 * every claim, and every write names it,
 * so that a worker that has lost the lease changes nothing any more.
 */
export type Lease = Pick<BatchRow, "id" | "epoch">

const longestBeatMs = 1_000

const leased = ({ database }: BatchDeps, { id, epoch }: Lease, tx?: Transaction) =>
  database
    .queries<BatchTables>(tx)
    .updateTable("batches_batch")
    .where("id", "=", id)
    .where("epoch", "=", epoch)

const leaseUntil = ({ clock, limits }: BatchDeps): Date => new Date(clock.nowMs() + limits.leaseMs)

/** Undefined: another worker has it. */
const renewLease = (
  deps: BatchDeps,
  lease: Lease,
): Effect.Effect<BatchRow | undefined, PortError> =>
  deps.database.run(() =>
    leased(deps, lease)
      .set({ lease_until: leaseUntil(deps) })
      .returningAll()
      .executeTakeFirst(),
  )

/** Another worker may claim the batch at once. */
export const releaseLease = (deps: BatchDeps, lease: Lease): Effect.Effect<void, PortError> =>
  Effect.asVoid(deps.database.run(() => leased(deps, lease).set({ lease_until: null }).execute()))

/**
 * Moves a validated batch to `in_progress`. Undefined: it was cancelled, or another worker has it.
 */
export const beginLines = (
  deps: BatchDeps,
  lease: Lease,
  { total, lineErrors }: Extract<PreflightResult, { readonly total: number }>,
): Effect.Effect<BatchRow | undefined, PortError> =>
  deps.database.run(() =>
    leased(deps, lease)
      .set({
        status: "in_progress",
        total,
        errors: lineErrors.length > 0 ? sql`${JSON.stringify(lineErrors)}::jsonb` : null,
        in_progress_at: new Date(deps.clock.nowMs()),
        lease_until: leaseUntil(deps),
      })
      .where("status", "=", "validating")
      .returningAll()
      .executeTakeFirst(),
  )

/** The batch as it is now. Undefined: it has ended, or another worker has it. */
export const readLeased = (
  { database }: BatchDeps,
  { id, epoch }: Lease,
): Effect.Effect<BatchRow | undefined, PortError> =>
  database.run(() =>
    database
      .queries<BatchTables>()
      .selectFrom("batches_batch")
      .selectAll()
      .where("id", "=", id)
      .where("epoch", "=", epoch)
      .where("ended_at", "is", null)
      .executeTakeFirst(),
  )

/**
 * Renews the lease until it is interrupted, and cancels the work when the batch expired, was
 * cancelled, or belongs to another worker.
 * While the database is away nobody can claim the batch: the work goes on, and the first renewal
 * after that says whose it is.
 */
export const heartbeat = (
  deps: BatchDeps,
  row: BatchRow,
  cancellation: Cancellation,
): Effect.Effect<never> => {
  const { clock, limits, log } = deps
  let untilMs = clock.nowMs() + limits.leaseMs
  const beat = Effect.suspend(() => {
    if (clock.nowMs() >= row.deadline_at.getTime()) cancellation.cancel("expired")
    const askedMs = clock.nowMs()
    return Effect.map(renewLease(deps, row), (now) => {
      untilMs = askedMs + limits.leaseMs
      if (!now) cancellation.cancel("lost")
      else if (now.ended_at) cancellation.cancel("cancelled")
    })
  }).pipe(
    Effect.catch((error) =>
      Effect.sync(() => {
        log.warn("batch.lease_renewal_failed", "the lease of a batch could not be renewed", {
          batch: row.id,
          reason: error.message,
        })
        if (clock.nowMs() >= untilMs && !isOutage(error)) cancellation.cancel("lost")
      }),
    ),
  )
  return Effect.forever(
    Effect.andThen(Effect.sleep(Math.min(longestBeatMs, limits.leaseMs / 3)), beat),
  )
}
