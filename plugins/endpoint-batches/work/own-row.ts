import { Effect } from "effect"
import type { PortError, Transaction } from "../../../core/index.ts"
import type { BatchHouse } from "../house.ts"
import type { BatchRow, BatchTables } from "../tables.ts"

/** A batch as its worker knows it: whose epoch it is may have changed since. */
export type Hold = Pick<BatchRow, "id" | "epoch">

const own = ({ database }: BatchHouse, { id, epoch }: Hold, tx?: Transaction) =>
  database
    .queries<BatchTables>(tx)
    .updateTable("batches_batch")
    .where("id", "=", id)
    .where("epoch", "=", epoch)

const leaseUntil = ({ clock, limits }: BatchHouse): Date => new Date(clock.nowMs() + limits.leaseMs)

/** Keeps it. Undefined: another worker has it. */
export const renewLease = (
  house: BatchHouse,
  hold: Hold,
): Effect.Effect<BatchRow | undefined, PortError> =>
  house.database.run(() =>
    own(house, hold)
      .set({ lease_until: leaseUntil(house) })
      .returningAll()
      .executeTakeFirst(),
  )

/** Lets others have it at once. */
export const releaseLease = (house: BatchHouse, hold: Hold): Effect.Effect<void, PortError> =>
  Effect.asVoid(house.database.run(() => own(house, hold).set({ lease_until: null }).execute()))

/** Pre-flight passed. Undefined: it was cancelled, or another worker has it. */
export const beginLines = (
  house: BatchHouse,
  hold: Hold,
  total: number,
): Effect.Effect<BatchRow | undefined, PortError> =>
  house.database.run(() =>
    own(house, hold)
      .set({
        status: "in_progress",
        total,
        in_progress_at: new Date(house.clock.nowMs()),
        lease_until: leaseUntil(house),
      })
      .where("status", "=", "validating")
      .returningAll()
      .executeTakeFirst(),
  )

/** As it is now. Undefined: it has ended, or another worker has it. */
export const readOwn = (
  { database }: BatchHouse,
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
