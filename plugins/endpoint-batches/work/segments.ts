import { Effect } from "effect"
import {
  type BlobInfo,
  type PortError,
  randomText,
  type StorageError,
  type Transaction,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import type { Lease } from "./lease.ts"
import type { CompletedRange } from "./progress.ts"
import { type Kind, lineBytes } from "./results.ts"

/** Prefix of the keys of all segments. */
export const segmentPrefix = "batches/"

/**
 * Holds the epoch: what a worker writes that has lost its lease is beside what the new one writes,
 * never in its place.
 */
export const segmentKey = ({ id, epoch }: Lease, part: number, kind: Kind): string =>
  `${segmentPrefix}${id}/${epoch}-${part}-${kind}`

/** The lease under which the blob was written; undefined: it is no segment's key. */
export const readSegmentKey = (key: string): Lease | undefined => {
  const name = /^batches\/([^/]+)\/(\d+)-\d+-(?:output|error)(?:-\w+)?$/
  const [, id, epoch] = name.exec(key) ?? []
  return id !== undefined && epoch !== undefined ? { id, epoch: Number(epoch) } : undefined
}

const kinds: readonly Kind[] = ["output", "error"]

interface WrittenPart {
  readonly kind: Kind
  readonly blob: BlobInfo
}

/**
 * Most ranges have no errors, which shows only when they have been read: an empty blob is removed
 * at once.
 */
const putKind = (
  deps: BatchDeps,
  lease: Lease,
  { through }: CompletedRange,
  kind: Kind,
): Effect.Effect<readonly WrittenPart[], StorageError> =>
  Effect.gen(function* () {
    // a try whose outcome is unknown may have recorded its own
    const key = `${segmentKey(lease, through, kind)}-${randomText()}`
    const blob = yield* deps.storage.put(
      key,
      lineBytes(deps, lease.id, kind, through),
      Number.MAX_SAFE_INTEGER,
    )
    if (blob.bytes > 0) return [{ kind, blob }]
    yield* Effect.ignore(deps.storage.remove(blob.key))
    return []
  })

const put = (
  deps: BatchDeps,
  lease: Lease,
  range: CompletedRange,
): Effect.Effect<readonly WrittenPart[], StorageError> =>
  Effect.map(
    Effect.forEach(kinds, (kind) => putKind(deps, lease, range, kind)),
    (made) => made.flat(),
  )

/** A transaction whose answer was lost may have moved the range: its lines are gone then. */
const isRecorded = (
  { database }: BatchDeps,
  { id, epoch }: Lease,
  { through }: CompletedRange,
): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<BatchTables>()
        .selectFrom("batches_batch")
        .select("done_through")
        .where("id", "=", id)
        .where("epoch", "=", epoch)
        .executeTakeFirst(),
    ),
    (row) => row !== undefined && row.done_through >= through,
  )

const record = (
  deps: BatchDeps,
  { id, epoch }: Lease,
  { through, offset }: CompletedRange,
  made: readonly WrittenPart[],
  tx: Transaction,
): Effect.Effect<boolean, PortError> =>
  Effect.gen(function* () {
    const { database } = deps
    const db = database.queries<BatchTables>(tx)
    const { numUpdatedRows } = yield* database.run(() =>
      db
        .updateTable("batches_batch")
        .set({ done_through: through, done_offset: BigInt(offset) })
        .where("id", "=", id)
        .where("epoch", "=", epoch)
        .where("status", "=", "in_progress")
        .executeTakeFirst(),
    )
    if (numUpdatedRows === 0n) return false
    const rows = made.map(({ kind, blob }) => ({
      batch_id: id,
      kind,
      part: through,
      blob_key: blob.key,
      bytes: BigInt(blob.bytes),
    }))
    if (rows.length > 0)
      yield* database.run(() => db.insertInto("batches_part").values(rows).execute())
    yield* database.run(() =>
      db
        .deleteFrom("batches_line")
        .where("batch_id", "=", id)
        .where("line", "<=", through)
        .execute(),
    )
    return true
  })

/**
 * Moves a completed range from rows into a segment: a row of `batches_part` and its blob for each
 * kind of answer. This keeps the reorder buffer
 * small, and the next worker reads the input from here on. Returns whether the lease still holds. A
 * blob that no row names is swept. May be tried again.
 */
export const writeSegment = (
  deps: BatchDeps,
  lease: Lease,
  range: CompletedRange,
): Effect.Effect<boolean, StorageError> =>
  Effect.gen(function* () {
    if (yield* isRecorded(deps, lease, range)) return true
    const made = yield* put(deps, lease, range)
    return yield* deps.database.transaction((tx) => record(deps, lease, range, made, tx))
  })
