import { Effect } from "effect"
import type { PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { Failure } from "../free-plan.ts"
import type { FilesHouse } from "../house.ts"
import type { FilesTables, UploadRow } from "../tables.ts"
import { purge, throwAway } from "../trash.ts"
import { changeUsage } from "../usage.ts"
import { changeUpload, isCompleting, lockOpenUpload } from "./rows.ts"

/** Answers the keys of the blobs, for `purge` after the commit. */
export const dropParts = (
  house: FilesHouse,
  upload: string,
  tx: Transaction,
): Effect.Effect<readonly string[], PortError> =>
  Effect.gen(function* () {
    const { database } = house
    const gone = yield* database.run(() =>
      database
        .queries<FilesTables>(tx)
        .deleteFrom("files_part")
        .where("upload_id", "=", upload)
        .returning("blob_key")
        .execute(),
    )
    const keys = gone.map(({ blob_key }) => blob_key)
    yield* throwAway(house, keys, tx)
    return keys
  })

const close = (
  house: FilesHouse,
  upload: UploadRow,
  status: "cancelled" | "expired",
  tx: Transaction,
) =>
  Effect.gen(function* () {
    const keys = yield* dropParts(house, upload.id, tx)
    const row = yield* changeUpload(house, upload.id, { status, completing: null }, tx)
    yield* changeUsage(house.database, upload, { bytes: -Number(upload.bytes), files: -1 }, tx)
    return { row, keys }
  })

export const cancelUpload = (
  house: FilesHouse,
  tenant: Tenant,
  id: string,
): Effect.Effect<UploadRow, Failure> =>
  Effect.gen(function* () {
    const { row, keys } = yield* house.database.transaction((tx) =>
      Effect.flatMap(lockOpenUpload(house, tenant, id, tx), (upload) =>
        close(house, upload, "cancelled", tx),
      ),
    )
    yield* purge(house, keys)
    return row
  })

/** One that is pending past its time; undefined when there is none that nobody else has locked. */
const lockExpired = ({ database, clock }: FilesHouse, tx: Transaction, skip: readonly string[]) =>
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

/** One that is being completed may still end well. Answers how many expired. */
export const expireUploads = (house: FilesHouse): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const busy: string[] = []
    for (let expired = 0; ; ) {
      const keys = yield* house.database.transaction((tx) =>
        Effect.gen(function* () {
          const upload = yield* lockExpired(house, tx, busy)
          if (!upload) return undefined
          if (!(yield* isCompleting(house, upload, tx)))
            return (yield* close(house, upload, "expired", tx)).keys
          busy.push(upload.id)
          return "busy" as const
        }),
      )
      if (keys === undefined) return expired
      if (keys === "busy") continue
      expired += 1
      yield* purge(house, keys)
    }
  })
