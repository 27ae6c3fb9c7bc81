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
import { purge, throwAway } from "./deletion-queue.ts"
import { changeUsage, takeUsage } from "./quota.ts"

/** Longer than a request may take to arrive; a server that was killed gives the rest back after this. */
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

/** More of the quota, at least `need` and at best `want` bytes. Answers how much it was. */
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
      const taken = yield* takeUsage(database, limits, tenant, bytes, tx)
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

/** The blob is whole: whoever goes on in `tx` owns it, and what it held of the quota. Answers how much that is. */
export const endIncoming = (
  deps: FilesDeps,
  { id }: Incoming,
  tx: Transaction,
): Effect.Effect<number, ApiError | PortError> =>
  Effect.flatMap(takeRow(deps, id, tx), (row) =>
    row ? Effect.succeed(Number(row.held_bytes)) : Effect.fail(lost()),
  )

/** Nothing of it stays. Harmless after its end, and again. */
export const abandonIncoming = (deps: FilesDeps, id: string): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const key = yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = yield* takeRow(deps, id, tx)
        if (!row) return undefined
        if (row.held_bytes > 0n)
          yield* changeUsage(deps.database, row, { bytes: -Number(row.held_bytes) }, tx)
        yield* throwAway(deps, [row.blob_key], tx)
        return row.blob_key
      }),
    )
    if (key !== undefined) yield* purge(deps, [key])
  })
