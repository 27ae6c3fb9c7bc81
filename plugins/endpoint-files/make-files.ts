import { Effect } from "effect"
import type { Files, StoredFile } from "../../core/index.ts"
import { makeBlobKey } from "./blob-key.ts"
import { deleteFile, findFile, insertFile, isFileId } from "./file-rows.ts"
import type { FilesHouse } from "./house.ts"
import type { FileRow, FilesTables } from "./tables.ts"
import { purge } from "./trash.ts"

const toStored = (row: FileRow): StoredFile => ({
  id: row.id,
  tenant: { account: row.account, mode: row.mode },
  filename: row.filename,
  purpose: row.purpose,
  status: row.status === "deleted" ? "failed" : row.status,
  statusDetails: row.status_details ?? undefined,
  bytes: Number(row.bytes),
  blobKey: row.blob_key,
  createdMs: row.created_at.getTime(),
  expiresMs: row.expires_at.getTime(),
})

/** A deleted one keeps its row for a time. */
const knowsFile =
  (house: FilesHouse): Files["knows"] =>
  ({ account, mode }, id) =>
    Effect.map(
      house.database.run(() =>
        house.database
          .queries<FilesTables>()
          .selectFrom("files_file")
          .select("id")
          .where((eb) => eb.and({ id, account, mode }))
          .executeTakeFirst(),
      ),
      (row) => row !== undefined,
    )

const markFile =
  (house: FilesHouse): Files["mark"] =>
  (tenant, id, status, details, tx) => {
    if (!isFileId(id)) return Effect.succeed(false)
    const set = { status, status_details: details ?? null }
    return Effect.map(
      house.database.run(() =>
        house.database
          .queries<FilesTables>(tx)
          .updateTable("files_file")
          .set(set)
          .where("id", "=", id)
          .where("account", "=", tenant.account)
          .where("mode", "=", tenant.mode)
          .where("deleted_at", "is", null)
          .executeTakeFirst(),
      ),
      ({ numUpdatedRows }) => numUpdatedRows > 0n,
    )
  }

const removeFile =
  (house: FilesHouse): Files["remove"] =>
  (tenant, id, tx) => {
    if (!isFileId(id)) return Effect.succeed(false)
    // nobody tells us when a foreign transaction commits, so the sweeper has it at its next turn
    if (tx) return Effect.map(deleteFile(house, tenant, id, tx, 0), (key) => key !== undefined)
    const deleted = house.database.transaction((own) => deleteFile(house, tenant, id, own))
    return Effect.flatMap(deleted, (key) =>
      key === undefined ? Effect.succeed(false) : Effect.as(purge(house, [key]), true),
    )
  }

export const makeFiles = (house: FilesHouse): Files => ({
  find: (tenant, id) => Effect.map(findFile(house, tenant, id), (row) => row && toStored(row)),
  knows: knowsFile(house),
  read: ({ blobKey }, range) => house.storage.get(blobKey, range),
  newId: () => house.ids.make("file-"),
  newBlobKey: (tenant) => makeBlobKey(house.ids, tenant),
  create: ({ id, tenant, filename, purpose, blobKey, bytes, expiresMs }, tx) =>
    Effect.map(
      insertFile(
        house,
        {
          id,
          tenant,
          filename,
          purpose,
          blob_key: blobKey,
          bytes,
          expires_at: new Date(expiresMs),
          counted: false,
        },
        tx,
      ),
      toStored,
    ),
  mark: markFile(house),
  remove: removeFile(house),
})
