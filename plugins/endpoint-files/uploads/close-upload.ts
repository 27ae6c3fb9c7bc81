import { Effect } from "effect"
import type { PlanError, PortError, Tenant, Transaction } from "../../../core/index.ts"
import { deleteBlobs, scheduleDeletion } from "../blobs/deletion-queue.ts"
import { adjustQuota } from "../blobs/quota.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables, UploadRow } from "../tables.ts"
import { changeUpload, isCompleting, lockOpenUpload } from "./upload-rows.ts"

/**
 * Deletes the rows of the parts. Returns the keys of their blobs, for `deleteBlobs` after the
 * commit.
 */
export const dropParts = (
  deps: FilesDeps,
  upload: string,
  tx: Transaction,
): Effect.Effect<readonly string[], PortError> =>
  Effect.gen(function* () {
    const { database } = deps
    const gone = yield* database.run(() =>
      database
        .queries<FilesTables>(tx)
        .deleteFrom("files_part")
        .where("upload_id", "=", upload)
        .returning("blob_key")
        .execute(),
    )
    const keys = gone.map(({ blob_key }) => blob_key)
    yield* scheduleDeletion(deps, keys, tx)
    return keys
  })

const close = (
  deps: FilesDeps,
  upload: UploadRow,
  status: "cancelled" | "expired",
  tx: Transaction,
) =>
  Effect.gen(function* () {
    const keys = yield* dropParts(deps, upload.id, tx)
    const row = yield* changeUpload(deps, upload.id, { status, completing: null }, tx)
    yield* adjustQuota(deps.database, upload, { bytes: -Number(upload.bytes), files: -1 }, tx)
    return { row, keys }
  })

export const cancelUpload = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<UploadRow, PlanError> =>
  Effect.gen(function* () {
    const { row, keys } = yield* deps.database.transaction((tx) =>
      Effect.flatMap(lockOpenUpload(deps, tenant, id, tx), (upload) =>
        close(deps, upload, "cancelled", tx),
      ),
    )
    yield* deleteBlobs(deps, keys)
    return row
  })

/**
 * Locks a pending upload past its time; undefined when there is none, or others have locked them
 * all.
 */
const lockExpired = ({ database, clock }: FilesDeps, tx: Transaction, skip: readonly string[]) =>
  database.run(() => {
    const query = database
      .queries<FilesTables>(tx)
      .selectFrom("files_upload")
      .selectAll()
      .where("status", "=", "pending")
      .where("expires_at", "<=", new Date(clock.nowMs()))
    return (skip.length > 0 ? query.where("id", "not in", skip) : query)
      .orderBy("expires_at")
      .limit(1)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
  })

/**
 * Expires pending uploads, except those that are being completed. Returns the number of expired
 * uploads.
 */
export const expireUploads = (deps: FilesDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const busy: string[] = []
    for (let expired = 0; ; ) {
      const keys = yield* deps.database.transaction((tx) =>
        Effect.gen(function* () {
          const upload = yield* lockExpired(deps, tx, busy)
          if (!upload) return undefined
          if (!(yield* isCompleting(deps, upload, tx)))
            return (yield* close(deps, upload, "expired", tx)).keys
          busy.push(upload.id)
          return "busy" as const
        }),
      )
      if (keys === undefined) return expired
      if (keys === "busy") continue
      expired += 1
      yield* deleteBlobs(deps, keys)
    }
  })
