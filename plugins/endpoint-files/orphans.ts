import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { PortError, StorageError } from "../../core/index.ts"
import { blobPrefix, madeMs } from "./blob-key.ts"
import type { FilesHouse } from "./house.ts"
import type { FilesTables } from "./tables.ts"

/** A blob that was just written may still be named: the batch worker's first, its row later. */
export const orphanMs = 3_600_000
const keysPerLook = 500

/** Puts those that no row names among what is to be removed. One statement: a row can't come and go between the look and the deed. */
const throwUnnamed = ({ database, clock }: FilesHouse, keys: readonly string[]): Effect.Effect<number, PortError> => {
  const named = ["files_file", "files_part", "files_incoming"].map((table) => sql`SELECT 1 FROM ${sql.table(table)} t WHERE t.blob_key = k.key`)
  const isNamed = named.map((look, at) => (at === 0 ? sql`EXISTS (${look} AND t.deleted_at IS NULL)` : sql`EXISTS (${look})`))
  const query = sql`
    INSERT INTO files_trash (blob_key, due_at)
    SELECT k.key, ${new Date(clock.nowMs())} FROM unnest(${keys as string[]}::text[]) AS k(key) WHERE NOT (${sql.join(isNamed, sql` OR `)})
    ON CONFLICT DO NOTHING`
  return Effect.map(
    database.run(() => query.execute(database.queries<FilesTables>())),
    ({ numAffectedRows }) => Number(numAffectedRows ?? 0n),
  )
}

/** Walks over all blobs of ours. Answers how many nobody names. */
export const throwOrphans = (house: FilesHouse): Effect.Effect<number, StorageError> => {
  const before = house.clock.nowMs() - orphanMs
  const isOld = (key: string) => (madeMs(key) ?? Number.POSITIVE_INFINITY) <= before
  return house.storage.list(blobPrefix).pipe(
    Stream.map(({ key }) => key),
    Stream.filter(isOld),
    Stream.grouped(keysPerLook),
    Stream.mapEffect((keys) => throwUnnamed(house, [...keys])),
    Stream.runFold(
      () => 0,
      (all, thrown) => all + thrown,
    ),
  )
}
