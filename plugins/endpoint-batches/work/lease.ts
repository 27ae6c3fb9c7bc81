import { Effect } from "effect"
import type { PortError, Transaction } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"

/** A batch as its worker knows it: whose epoch it is may have changed since. */
export type Hold = Pick<BatchRow, "id" | "epoch">

const own = ({ database }: BatchDeps, { id, epoch }: Hold, tx?: Transaction) =>
  database
    .queries<BatchTables>(tx)
    .updateTable("batches_batch")
    .where("id", "=", id)
    .where("epoch", "=", epoch)

const leaseUntil = ({ clock, limits }: BatchDeps): Date => new Date(clock.nowMs() + limits.leaseMs)

/** Keeps it. Undefined: another worker has it. */
export const renewLease = (
  deps: BatchDeps,
  hold: Hold,
): Effect.Effect<BatchRow | undefined, PortError> =>
  deps.database.run(() =>
    own(deps, hold)
      .set({ lease_until: leaseUntil(deps) })
      .returningAll()
      .executeTakeFirst(),
  )

/** Lets others have it at once. */
export const releaseLease = (deps: BatchDeps, hold: Hold): Effect.Effect<void, PortError> =>
  Effect.asVoid(deps.database.run(() => own(deps, hold).set({ lease_until: null }).execute()))

/** Pre-flight passed. Undefined: it was cancelled, or another worker has it. */
export const beginLines = (
  deps: BatchDeps,
  hold: Hold,
  total: number,
): Effect.Effect<BatchRow | undefined, PortError> =>
  deps.database.run(() =>
    own(deps, hold)
      .set({
        status: "in_progress",
        total,
        in_progress_at: new Date(deps.clock.nowMs()),
        lease_until: leaseUntil(deps),
      })
      .where("status", "=", "validating")
      .returningAll()
      .executeTakeFirst(),
  )

/** As it is now. Undefined: it has ended, or another worker has it. */
export const readOwn = (
  { database }: BatchDeps,
  { id, epoch }: Hold,
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
