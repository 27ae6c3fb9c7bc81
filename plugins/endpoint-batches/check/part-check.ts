import { Effect, Stream } from "effect"
import { sql } from "kysely"
import type { ConsistencyCheck, Finding, PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import { readSegmentKey, segmentPrefix } from "../work/segments.ts"
import { orphansOf } from "../work/sweep.ts"

/** A running server has swept by then. */
const orphanMs = 2 * 3_600_000
const keysPerPage = 500

const onlyPortError = (error: StorageError): Effect.Effect<never, PortError> =>
  error._tag === "PortError" ? Effect.fail(error) : Effect.die(error)

/** The keys whose batch ended long ago, or is gone: a blob has no age of its own. */
const keysOfOldBatches = (
  { database, clock }: BatchDeps,
  keys: readonly string[],
): Effect.Effect<readonly string[], PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ key: string }>`
        SELECT k.key FROM unnest(${keys}::text[], ${keys.map((key) => readSegmentKey(key)?.id ?? "")}::text[]) AS k(key, id)
        WHERE NOT EXISTS (SELECT 1 FROM batches_batch b WHERE b.id = k.id AND (b.ended_at IS NULL OR b.ended_at > ${new Date(clock.nowMs() - orphanMs)}))`.execute(
        database.queries<BatchTables>(),
      ),
    ),
    ({ rows }) => rows.map(({ key }) => key),
  )

/** False: it was removed after it was listed. */
const isThere = ({ storage }: BatchDeps, key: string): Effect.Effect<boolean, PortError> =>
  storage.stat(key).pipe(
    Effect.map(() => true),
    Effect.catch((error) =>
      error._tag === "BlobMissing" ? Effect.succeed(false) : onlyPortError(error),
    ),
  )

const judge = (
  deps: BatchDeps,
  keys: readonly string[],
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    const found: Finding[] = keys
      .filter((key) => !readSegmentKey(key))
      .map((key) => ({
        subject: `blob ${key}`,
        problem: "it lies among the parts of batches, but its key is none of theirs",
      }))
    for (const key of yield* keysOfOldBatches(deps, yield* orphansOf(deps, keys)))
      if (yield* isThere(deps, key))
        found.push({
          subject: `blob ${key}`,
          problem: "no part names it, and none will",
          remedy: "it is removed",
          repair: Effect.catch(deps.storage.remove(key), onlyPortError),
        })
    return found
  })

export const partCheck = (deps: BatchDeps): ConsistencyCheck => ({
  name: "batch parts",
  about: "each blob below batches/ is a part of a batch",
  findings: (looked) =>
    deps.storage.list(segmentPrefix).pipe(
      Stream.catch((error) => Stream.fromEffect(onlyPortError(error))),
      Stream.grouped(keysPerPage),
      Stream.mapEffect((infos) => {
        looked(infos.length)
        return judge(
          deps,
          infos.map(({ key }) => key),
        )
      }),
      Stream.flattenIterable,
    ),
})
