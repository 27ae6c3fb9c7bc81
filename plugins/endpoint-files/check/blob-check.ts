import { Effect, Stream } from "effect"
import { sql } from "kysely"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { blobPrefix, createdMsOf } from "../blobs/blob-key.ts"
import { deleteBlob } from "../blobs/deletion-queue.ts"
import type { FilesDeps } from "../deps.ts"
import { findUnnamed, orphanAgeMs, scheduleUnnamed } from "../sweep/orphans.ts"
import type { FilesTables } from "../tables.ts"
import { isBlobThere, noBlobMissing } from "./blob-of-row.ts"

/** A live server works through the deletion queue every few seconds. */
const overdueMs = 5 * 60_000
const keysPerBatch = 500

const removal = (deps: FilesDeps, key: string): Pick<Finding, "remedy" | "repair"> => ({
  remedy: "it is removed",
  // a blob that was named meanwhile stays: check and write are one statement
  repair: Effect.flatMap(scheduleUnnamed(deps, [key]), (queued) =>
    queued > 0 ? Effect.asVoid(deleteBlob(deps, key)) : Effect.void,
  ),
})

/** Keeps the keys whose blob still exists: a file may have been deleted since the list was read. */
const stillStored = (deps: FilesDeps) => (keys: readonly string[]) =>
  Effect.map(
    Effect.forEach(keys, (key) =>
      Effect.map(isBlobThere(deps.storage, key), (isThere) => (isThere ? [key] : [])),
    ),
    (found) => found.flat(),
  )

/**
 * Finds blobs that no row names and that are old enough: a new blob gets its row a little later.
 */
const orphans = (
  deps: FilesDeps,
  looked: (things: number) => void,
): Stream.Stream<Finding, PortError> => {
  const before = deps.clock.nowMs() - orphanAgeMs
  const judge = (keys: readonly string[]) => {
    looked(keys.length)
    const foreign = keys
      .filter((key) => createdMsOf(key) === undefined)
      .map(
        (key): Finding => ({
          subject: `blob ${key}`,
          problem: "it lies among the files, but its key is none of theirs",
        }),
      )
    const old = keys.filter((key) => (createdMsOf(key) ?? Number.POSITIVE_INFINITY) <= before)
    return Effect.map(Effect.flatMap(findUnnamed(deps, old), stillStored(deps)), (lost) => [
      ...foreign,
      ...lost.map(
        (key): Finding => ({
          subject: `blob ${key}`,
          problem: "no file, part or request names it",
          ...removal(deps, key),
        }),
      ),
    ])
  }
  return deps.storage.list(blobPrefix).pipe(
    Stream.catch((error) => Stream.fromEffect(noBlobMissing(error))),
    Stream.map(({ key }) => key),
    Stream.grouped(keysPerBatch),
    Stream.mapEffect((keys) => judge([...keys])),
    Stream.flattenIterable,
  )
}

interface QueuedDeletion {
  readonly key: string
  readonly is_named: boolean
}

/** Finds queued blobs that are overdue, and queued blobs that a row names. */
const deletionQueue = (
  deps: FilesDeps,
  looked: (things: number) => void,
): Stream.Stream<Finding, PortError> => {
  const { database, clock } = deps
  const due = new Date(clock.nowMs() - overdueMs)
  const named = sql`(EXISTS (SELECT 1 FROM files_file f WHERE f.blob_key = t.blob_key AND f.deleted_at IS NULL) OR EXISTS (SELECT 1 FROM files_part p WHERE p.blob_key = t.blob_key))`
  const page = (after: QueuedDeletion | undefined, limit: number) =>
    Effect.map(
      database.run(() =>
        sql<QueuedDeletion>`SELECT t.blob_key AS key, ${named} AS is_named FROM files_trash t WHERE t.blob_key > ${after?.key ?? ""} AND (t.due_at <= ${due} OR ${named}) ORDER BY t.blob_key LIMIT ${limit}`.execute(
          database.queries<FilesTables>(),
        ),
      ),
      ({ rows }) => rows,
    )
  const keep = (key: string) =>
    Effect.asVoid(
      database.run(() =>
        sql`DELETE FROM files_trash t WHERE blob_key = ${key} AND ${named}`.execute(
          database.queries<FilesTables>(),
        ),
      ),
    )
  const findingOf = ({ key, is_named }: QueuedDeletion): Finding =>
    is_named
      ? {
          subject: `blob ${key}`,
          problem: "it is to be removed, but a file or a part names it",
          remedy: "it is kept",
          repair: keep(key),
        }
      : {
          subject: `blob ${key}`,
          problem: "it was thrown away, and is still there",
          remedy: "it is removed",
          repair: Effect.asVoid(deleteBlob(deps, key)),
        }
  return inPages({ page, judge: (rows) => Effect.succeed(rows.map(findingOf)) }, looked)
}

export const blobCheck = (deps: FilesDeps): ConsistencyCheck => ({
  name: "blobs",
  about:
    "each blob below files/ is named by a file, a part of an upload or a request, and what was thrown away is gone",
  findings: (looked) => Stream.concat(deletionQueue(deps, looked), orphans(deps, looked)),
})
