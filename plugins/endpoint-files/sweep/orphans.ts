import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { PortError, StorageError } from "../../../core/index.ts"
import { blobPrefix, madeMs } from "../blobs/blob-key.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"

/** A blob that was just written may still be named: the batch worker's first, its row later. */
export const orphanMs = 3_600_000
const keysPerLook = 500

/** Those of `keys` that no row names, in one statement: a row can't come and go between the look and the deed. */
const unnamed = (keys: readonly string[]) => {
  const named = ["files_file", "files_part", "files_incoming"].map(
    (table) => sql`SELECT 1 FROM ${sql.table(table)} t WHERE t.blob_key = k.key`,
  )
  const isNamed = named.map((look, at) =>
    at === 0 ? sql`EXISTS (${look} AND t.deleted_at IS NULL)` : sql`EXISTS (${look})`,
  )
  return sql`FROM unnest(${keys as string[]}::text[]) AS k(key) WHERE NOT (${sql.join(isNamed, sql` OR `)})`
}

/** Puts those that no row names among what is to be removed. */
export const throwUnnamed = (
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

/** Those that no row names, nor the trash. */
export const unnamedOf = (
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

/** Walks over all blobs of ours. Answers how many nobody names. */
export const throwOrphans = (deps: FilesDeps): Effect.Effect<number, StorageError> => {
  const before = deps.clock.nowMs() - orphanMs
  const isOld = (key: string) => (madeMs(key) ?? Number.POSITIVE_INFINITY) <= before
  return deps.storage.list(blobPrefix).pipe(
    Stream.map(({ key }) => key),
    Stream.filter(isOld),
    Stream.grouped(keysPerLook),
    Stream.mapEffect((keys) => throwUnnamed(deps, [...keys])),
    Stream.runFold(
      () => 0,
      (all, thrown) => all + thrown,
    ),
  )
}
