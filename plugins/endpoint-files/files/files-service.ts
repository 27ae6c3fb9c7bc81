import { Effect } from "effect"
import type { Files, Transaction } from "../../../core/index.ts"
import { makeBlobKey } from "../blobs/blob-key.ts"
import { deleteBlobs } from "../blobs/deletion-queue.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"
import { deleteFile, findFile, insertFile, isFileId, toStored } from "./file-rows.ts"

/** Also true of a deleted file while it keeps its row. */
const knowsFile =
  (deps: FilesDeps): Files["knows"] =>
  ({ account, mode }, id) =>
    Effect.map(
      deps.database.run(() =>
        deps.database
          .queries<FilesTables>()
          .selectFrom("files_file")
          .select("id")
          .where((eb) => eb.and({ id, account, mode }))
          .executeTakeFirst(),
      ),
      (row) => row !== undefined,
    )

const markFile =
  (deps: FilesDeps): Files["mark"] =>
  (tenant, id, { status, details, progress }, tx) => {
    if (!isFileId(id)) return Effect.succeed(false)
    const set = {
      status,
      status_details: details ?? null,
      progress: progress === undefined ? null : JSON.stringify(progress),
    }
    return Effect.map(
      deps.database.run(() =>
        deps.database
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
  (deps: FilesDeps): Files["remove"] =>
  (tenant, id, tx) => {
    if (!isFileId(id)) return Effect.succeed(false)
    // nothing signals the commit of the caller's transaction, so the sweeper deletes the blob at
    // its next turn
    if (tx) return Effect.map(deleteFile(deps, tenant, id, tx, 0), (key) => key !== undefined)
    const deleted = deps.database.transaction((own) => deleteFile(deps, tenant, id, own))
    return Effect.flatMap(deleted, (key) =>
      key === undefined ? Effect.succeed(false) : Effect.as(deleteBlobs(deps, [key]), true),
    )
  }

/** What the server makes is whole, and needs no processing. */
const createMade =
  (deps: FilesDeps): Files["create"] =>
  ({ id, tenant, filename, purpose, blobKey, bytes, expiresMs }, tx) => {
    const file = {
      ...{ id, tenant, filename, purpose, bytes },
      status: "processed" as const,
      blob_key: blobKey,
      expires_at: new Date(expiresMs),
      counted: false,
      metadata: {},
    }
    const insert = (within: Transaction) => Effect.map(insertFile(deps, file, within), toStored)
    return tx ? insert(tx) : deps.database.transaction(insert)
  }

export const makeFiles = (deps: FilesDeps): Files => ({
  find: (tenant, id) => Effect.map(findFile(deps, tenant, id), (row) => row && toStored(row)),
  knows: knowsFile(deps),
  read: ({ blobKey }, range) => deps.storage.get(blobKey, range),
  newId: () => deps.ids.make("file-"),
  newBlobKey: (tenant) => makeBlobKey(deps.ids, tenant),
  create: createMade(deps),
  observe: (observer) => void deps.observers.push(observer),
  mark: markFile(deps),
  remove: removeFile(deps),
})
