import { Effect } from "effect"
import type { PortError, Transaction } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"

/**
 * The time that the request itself has to delete the blob before the sweeper does; and the
 * sweeper's wait between its tries.
 */
const graceMs = 3_000
const retryMs = 60_000
const blobsPerTurn = 100

/**
 * Queues blobs for deletion in the transaction that deletes their rows: from the commit on they go,
 * whatever happens to this process.
 */
export const scheduleDeletion = (
  { database, clock }: FilesDeps,
  keys: readonly string[],
  tx: Transaction,
  waitMs = graceMs,
): Effect.Effect<void, PortError> => {
  const due_at = new Date(clock.nowMs() + waitMs)
  if (keys.length === 0) return Effect.void
  return Effect.asVoid(
    database.run(() =>
      database
        .queries<FilesTables>(tx)
        .insertInto("files_trash")
        .values(keys.map((blob_key) => ({ blob_key, due_at })))
        .onConflict((on) => on.doNothing())
        .execute(),
    ),
  )
}

const dequeue = ({ database }: FilesDeps, key: string) =>
  database.run(() =>
    database.queries<FilesTables>().deleteFrom("files_trash").where("blob_key", "=", key).execute(),
  )

const postpone = ({ database, clock }: FilesDeps, key: string) =>
  database.run(() =>
    database
      .queries<FilesTables>()
      .updateTable("files_trash")
      .set({ due_at: new Date(clock.nowMs() + retryMs) })
      .where("blob_key", "=", key)
      .execute(),
  )

/**
 * Idempotent, also across servers. A blob that can't be deleted is tried again later. Returns
 * whether it is gone.
 */
export const deleteBlob = (deps: FilesDeps, key: string): Effect.Effect<boolean, PortError> =>
  Effect.matchEffect(deps.storage.remove(key), {
    onSuccess: () => Effect.as(dequeue(deps, key), true),
    onFailure: (error) => {
      deps.log.warn("file.blob_removal_failed", "a blob could not be removed; it is tried again", {
        key,
        reason: String(error),
      })
      return Effect.as(postpone(deps, key), false)
    },
  })

/** Deletes queued blobs at once, after the commit. What fails is left to the sweeper. */
export const deleteBlobs = (deps: FilesDeps, keys: readonly string[]): Effect.Effect<void> =>
  Effect.ignore(Effect.forEach(keys, (key) => deleteBlob(deps, key)))

/** Deletes the queued blobs that are due. Returns the number of deleted blobs. */
export const deleteDueBlobs = (deps: FilesDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const { database, clock } = deps
    let gone = 0
    while (true) {
      const due = yield* database.run(() =>
        database
          .queries<FilesTables>()
          .selectFrom("files_trash")
          .select("blob_key")
          .where("due_at", "<=", new Date(clock.nowMs()))
          .orderBy("due_at")
          .limit(blobsPerTurn)
          .execute(),
      )
      for (const { blob_key } of due) if (yield* deleteBlob(deps, blob_key)) gone += 1
      if (due.length < blobsPerTurn) return gone
    }
  })
