import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import { partPrefix, readPartKey } from "./part-key.ts"

const atOnce = 500

/** Of a batch that has ended: first the blob, then the row that names it. */
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

/** Of a batch that was cancelled. */
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

/** Lines and parts of batches that have ended: nobody reads them any more. Answers how many went. */
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
      }>`SELECT DISTINCT b.id FROM batches_part p JOIN batches_batch b ON b.id = p.batch_id WHERE b.ended_at IS NOT NULL LIMIT ${atOnce}`.execute(
        db,
      ),
    )
    let gone = Number(numAffectedRows)
    for (const { id } of rows) gone += yield* dropParts(deps, id)
    return gone
  })

/**
 * Which of these blobs nobody will ever name: no row does, and its batch has ended, is gone, or belongs to a later epoch.
 * What the worker of now has put a moment ago is none of them.
 */
export const orphansOf = (
  { database }: BatchDeps,
  keys: readonly string[],
): Effect.Effect<readonly string[], PortError> => {
  const found = keys.flatMap((key) => {
    const hold = readPartKey(key)
    return hold ? [{ key, ...hold }] : []
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
  deps.storage.list(partPrefix).pipe(
    Stream.map(({ key }) => key),
    Stream.grouped(atOnce),
    Stream.mapEffect((keys) => orphansOf(deps, [...keys])),
    Stream.flatMap((keys) => Stream.fromIterable(keys)),
  )

/** Answers how many went. */
export const dropOrphans = (deps: BatchDeps): Effect.Effect<number, StorageError> =>
  Stream.runFold(
    Stream.mapEffect(orphanParts(deps), (key) => deps.storage.remove(key)),
    () => 0,
    (gone) => gone + 1,
  )
