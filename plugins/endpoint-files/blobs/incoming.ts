import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type PortError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"
import { makeBlobKey } from "./blob-key.ts"
import { deleteBlobs, scheduleDeletion } from "./deletion-queue.ts"
import { adjustQuota, takeQuota } from "./quota.ts"

/**
 * Longer than a request may take to arrive. After it other servers clean up what a killed server
 * left.
 */
export const leaseMs = 5 * 60_000

export interface Incoming {
  readonly id: string
  readonly tenant: Tenant
  readonly blobKey: string
}

const lost = () => apiError("conflict", "The upload took too long, and was given up.")

export const beginIncoming = (
  { database, clock, ids }: FilesDeps,
  tenant: Tenant,
  tx?: Transaction,
): Effect.Effect<Incoming, PortError> => {
  const incoming = { id: ids.make("in_"), tenant, blobKey: makeBlobKey(ids, tenant) }
  const { account, mode } = tenant
  const row = {
    id: incoming.id,
    account,
    mode,
    blob_key: incoming.blobKey,
    held_bytes: 0n,
    lease_until: new Date(clock.nowMs() + leaseMs),
  }
  return Effect.as(
    database.run(() =>
      database.queries<FilesTables>(tx).insertInto("files_incoming").values(row).execute(),
    ),
    incoming,
  )
}

/**
 * Takes at least `need` and up to `want` more bytes of the quota and renews the lease. Returns the
 * number of bytes taken.
 */
export const growIncoming = (
  deps: FilesDeps,
  { id, tenant }: Incoming,
  bytes: { readonly need: number; readonly want: number },
): Effect.Effect<number, ApiError | PortError> => {
  const { database, clock, limits } = deps
  const own = (tx: Transaction) =>
    database.queries<FilesTables>(tx).updateTable("files_incoming").where("id", "=", id)
  return database.transaction((tx) =>
    Effect.gen(function* () {
      const lease_until = new Date(clock.nowMs() + leaseMs)
      const { numUpdatedRows } = yield* database.run(() =>
        own(tx).set({ lease_until }).executeTakeFirst(),
      )
      if (numUpdatedRows === 0n) return yield* lost()
      const taken = yield* takeQuota(database, limits, tenant, bytes, tx)
      yield* database.run(() =>
        own(tx)
          .set((eb) => ({ held_bytes: eb("held_bytes", "+", BigInt(taken)) }))
          .execute(),
      )
      return taken
    }),
  )
}

const takeRow = ({ database }: FilesDeps, id: string, tx: Transaction) =>
  database.run(() =>
    database
      .queries<FilesTables>(tx)
      .deleteFrom("files_incoming")
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirst(),
  )

/**
 * Ends the row of a blob that is complete: `tx` must name the blob in another row. Returns the
 * quota that it held, in bytes, which goes over to the caller.
 */
export const endIncoming = (
  deps: FilesDeps,
  { id }: Incoming,
  tx: Transaction,
): Effect.Effect<number, ApiError | PortError> =>
  Effect.flatMap(takeRow(deps, id, tx), (row) =>
    row ? Effect.succeed(Number(row.held_bytes)) : Effect.fail(lost()),
  )

/** Deletes row, blob and share of the quota. Idempotent; does nothing after `endIncoming`. */
export const abandonIncoming = (deps: FilesDeps, id: string): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const key = yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = yield* takeRow(deps, id, tx)
        if (!row) return undefined
        if (row.held_bytes > 0n)
          yield* adjustQuota(deps.database, row, { bytes: -Number(row.held_bytes) }, tx)
        yield* scheduleDeletion(deps, [row.blob_key], tx)
        return row.blob_key
      }),
    )
    if (key !== undefined) yield* deleteBlobs(deps, [key])
  })
