import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { PortError, StorageError } from "../../../core/index.ts"
import { blobPrefix, createdMsOf } from "../blobs/blob-key.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"

/** A younger blob may still get its row: the batch worker writes the blob first. */
export const orphanAgeMs = 3_600_000
const keysPerBatch = 500

/**
 * SQL that selects those of `keys` that no row names, for use in one statement with the write:
 * check and write are atomic.
 */
const unnamed = (keys: readonly string[]) => {
  const named = ["files_file", "files_part", "files_incoming"].map(
    (table) => sql`SELECT 1 FROM ${sql.table(table)} t WHERE t.blob_key = k.key`,
  )
  const isNamed = named.map((one, at) =>
    at === 0 ? sql`EXISTS (${one} AND t.deleted_at IS NULL)` : sql`EXISTS (${one})`,
  )
  return sql`FROM unnest(${keys as string[]}::text[]) AS k(key) WHERE NOT (${sql.join(isNamed, sql` OR `)})`
}

/** Queues those of `keys` that no row names for deletion. Returns the number of queued blobs. */
export const scheduleUnnamed = (
  { database, clock }: FilesDeps,
  keys: readonly string[],
): Effect.Effect<number, PortError> =>
  Effect.map(
    database.run(() =>
      sql`INSERT INTO files_trash (blob_key, due_at) SELECT k.key, ${new Date(clock.nowMs())} ${unnamed(keys)} ON CONFLICT DO NOTHING`.execute(
        database.queries<FilesTables>(),
      ),
    ),
    ({ numAffectedRows }) => Number(numAffectedRows ?? 0n),
  )

/** Returns those of `keys` that neither a row nor the deletion queue names. */
export const findUnnamed = (
  { database }: FilesDeps,
  keys: readonly string[],
): Effect.Effect<readonly string[], PortError> =>
  Effect.map(
    database.run(() =>
      sql<{
        key: string
      }>`SELECT k.key ${unnamed(keys)} AND NOT EXISTS (SELECT 1 FROM files_trash t WHERE t.blob_key = k.key)`.execute(
        database.queries<FilesTables>(),
      ),
    ),
    ({ rows }) => rows.map(({ key }) => key),
  )

/** Queues all old orphans among this plugin's blobs for deletion. Returns their number. */
export const scheduleOrphans = (deps: FilesDeps): Effect.Effect<number, StorageError> => {
  const before = deps.clock.nowMs() - orphanAgeMs
  const isOld = (key: string) => (createdMsOf(key) ?? Number.POSITIVE_INFINITY) <= before
  return deps.storage.list(blobPrefix).pipe(
    Stream.map(({ key }) => key),
    Stream.filter(isOld),
    Stream.grouped(keysPerBatch),
    Stream.mapEffect((keys) => scheduleUnnamed(deps, [...keys])),
    Stream.runFold(
      () => 0,
      (all, queued) => all + queued,
    ),
  )
}
