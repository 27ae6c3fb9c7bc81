import { Effect, type Scope, Stream } from "effect"
import { sql } from "kysely"
import { type PortError, repeatInTurn, type StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import { readSegmentKey, segmentPrefix } from "./segments.ts"

/** Keys or batches of one statement. */
const pageSize = 500

/**
 * Removes the segments of a batch that has ended: each blob before the row that names it. Returns
 * the number of blobs.
 */
export const dropParts = (
  { database, storage }: BatchDeps,
  batch: string,
): Effect.Effect<number, StorageError> =>
  Effect.gen(function* () {
    const db = database.queries<BatchTables>()
    const parts = yield* database.run(() =>
      db.selectFrom("batches_part").select(["blob_key"]).where("batch_id", "=", batch).execute(),
    )
    for (const { blob_key } of parts) {
      yield* storage.remove(blob_key)
      yield* database.run(() =>
        db.deleteFrom("batches_part").where("blob_key", "=", blob_key).execute(),
      )
    }
    return parts.length
  })

/** Removes the answers of a batch that has ended without files. */
export const dropResults = (deps: BatchDeps, batch: string): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { database } = deps
    yield* database.run(() =>
      database
        .queries<BatchTables>()
        .deleteFrom("batches_line")
        .where("batch_id", "=", batch)
        .execute(),
    )
    yield* dropParts(deps, batch)
  })

/** Removes lines and segments of batches that have ended. Returns their number. */
export const dropEnded = (deps: BatchDeps): Effect.Effect<number, StorageError> =>
  Effect.gen(function* () {
    const { database } = deps
    const db = database.queries<BatchTables>()
    const { numAffectedRows = 0n } = yield* database.run(() =>
      sql`DELETE FROM batches_line l USING batches_batch b WHERE b.id = l.batch_id AND b.ended_at IS NOT NULL`.execute(
        db,
      ),
    )
    const { rows } = yield* database.run(() =>
      sql<{
        id: string
      }>`SELECT DISTINCT b.id FROM batches_part p JOIN batches_batch b ON b.id = p.batch_id WHERE b.ended_at IS NOT NULL LIMIT ${pageSize}`.execute(
        db,
      ),
    )
    let gone = Number(numAffectedRows)
    for (const { id } of rows) gone += yield* dropParts(deps, id)
    return gone
  })

/**
 * The blobs that no row names, or will name: their batch has ended, is gone, or has a later epoch.
 * What the current worker has just written is none of them.
 */
export const orphansOf = (
  { database }: BatchDeps,
  keys: readonly string[],
): Effect.Effect<readonly string[], PortError> => {
  const found = keys.flatMap((key) => {
    const lease = readSegmentKey(key)
    return lease ? [{ key, ...lease }] : []
  })
  const query = sql<{ key: string }>`
    SELECT k.key FROM unnest(${found.map(({ key }) => key)}::text[], ${found.map(({ id }) => id)}::text[], ${found.map(({ epoch }) => epoch)}::int[]) AS k(key, id, epoch)
    WHERE NOT EXISTS (SELECT 1 FROM batches_part p WHERE p.blob_key = k.key)
      AND NOT EXISTS (SELECT 1 FROM batches_batch b WHERE b.id = k.id AND b.ended_at IS NULL AND b.epoch <= k.epoch)`
  return Effect.map(
    database.run(() => query.execute(database.queries<BatchTables>())),
    ({ rows }) => rows.map(({ key }) => key),
  )
}

export const orphanParts = (deps: BatchDeps): Stream.Stream<string, StorageError> =>
  deps.storage.list(segmentPrefix).pipe(
    Stream.map(({ key }) => key),
    Stream.grouped(pageSize),
    Stream.mapEffect((keys) => orphansOf(deps, [...keys])),
    Stream.flatMap((keys) => Stream.fromIterable(keys)),
  )

/** Removes blobs that no row names. Returns their number. */
export const dropOrphans = (deps: BatchDeps): Effect.Effect<number, StorageError> =>
  Stream.runFold(
    Stream.mapEffect(orphanParts(deps), (key) => deps.storage.remove(key)),
    () => 0,
    (gone) => gone + 1,
  )

/** Sweeps every minute, orphans every hour. Every worker does; concurrent sweeps are safe. */
export const keepSwept = (deps: BatchDeps): Effect.Effect<void, never, Scope.Scope> => {
  const { log } = deps
  const logCount = (what: string) => (count: number) => {
    if (count > 0) log.info("batch.swept", what, { count })
  }
  return repeatInTurn(log, [
    [
      {
        event: "batch.sweep_failed",
        message: "results of ended batches dropped: failed",
        everyMs: 60_000,
      },
      Effect.map(dropEnded(deps), logCount("results of ended batches dropped")),
    ],
    [
      {
        event: "batch.orphan_sweep_failed",
        message: "orphan parts of batches dropped: failed",
        everyMs: 3_600_000,
      },
      Effect.map(dropOrphans(deps), logCount("orphan parts of batches dropped")),
    ],
  ])
}
