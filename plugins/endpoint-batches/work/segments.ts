import { Effect } from "effect"
import type { BlobInfo, PortError, StorageError, Transaction } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import type { Hold } from "./lease.ts"
import { partKey } from "./part-key.ts"
import type { Stretch } from "./progress.ts"
import { type Kind, lineBytes } from "./results.ts"

const kinds: readonly Kind[] = ["output", "error"]

interface MadePart {
  readonly kind: Kind
  readonly blob: BlobInfo
}

/** Most stretches have no errors, which shows when they have been read: such a blob goes at once. */
const putKind = (
  deps: BatchDeps,
  hold: Hold,
  { through }: Stretch,
  kind: Kind,
): Effect.Effect<readonly MadePart[], StorageError> =>
  Effect.gen(function* () {
    const blob = yield* deps.storage.put(
      partKey(hold, through, kind),
      lineBytes(deps, hold.id, kind, through),
      Number.MAX_SAFE_INTEGER,
    )
    if (blob.bytes > 0) return [{ kind, blob }]
    yield* Effect.ignore(deps.storage.remove(blob.key))
    return []
  })

const put = (
  deps: BatchDeps,
  hold: Hold,
  stretch: Stretch,
): Effect.Effect<readonly MadePart[], StorageError> =>
  Effect.map(
    Effect.forEach(kinds, (kind) => putKind(deps, hold, stretch, kind)),
    (made) => made.flat(),
  )

const record = (
  deps: BatchDeps,
  { id, epoch }: Hold,
  { through, offset }: Stretch,
  made: readonly MadePart[],
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
 * Answered lines go from rows into blobs, so that the reorder buffer stays small and a new worker need not read the input from its start.
 * Answers whether the batch still goes on, and is ours. A blob that no row names, for whatever reason, is swept.
 */
export const compact = (
  deps: BatchDeps,
  hold: Hold,
  stretch: Stretch,
): Effect.Effect<boolean, StorageError> =>
  Effect.gen(function* () {
    const made = yield* put(deps, hold, stretch)
    return yield* deps.database.transaction((tx) => record(deps, hold, stretch, made, tx))
  })
