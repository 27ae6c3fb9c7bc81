import { Effect } from "effect"
import type { PortError, Transaction } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"

/** How long the sweeper leaves it to whoever threw a blob away to remove it, and then waits between its own tries. */
const patienceMs = 3_000
const retryMs = 60_000
const blobsPerTurn = 100

/** With the rows that named them: from the commit on the blobs are to go, whatever happens to this process. */
export const throwAway = (
  { database, clock }: FilesDeps,
  keys: readonly string[],
  tx: Transaction,
  waitMs = patienceMs,
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

const forget = ({ database }: FilesDeps, key: string) =>
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

/** Again is harmless, also from several servers at once. A blob that can't be removed is tried again later, and does not stop the others. */
export const purgeOne = (deps: FilesDeps, key: string): Effect.Effect<boolean, PortError> =>
  Effect.matchEffect(deps.storage.remove(key), {
    onSuccess: () => Effect.as(forget(deps, key), true),
    onFailure: (error) => {
      deps.log.warn("file.blob_removal_failed", "a blob could not be removed; it is tried again", {
        key,
        reason: String(error),
      })
      return Effect.as(postpone(deps, key), false)
    },
  })

/** After the commit. What fails here is left to the sweeper. */
export const purge = (deps: FilesDeps, keys: readonly string[]): Effect.Effect<void> =>
  Effect.ignore(Effect.forEach(keys, (key) => purgeOne(deps, key)))

/** Answers how many blobs went. */
export const emptyTrash = (deps: FilesDeps): Effect.Effect<number, PortError> =>
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
      for (const { blob_key } of due) if (yield* purgeOne(deps, blob_key)) gone += 1
      if (due.length < blobsPerTurn) return gone
    }
  })
