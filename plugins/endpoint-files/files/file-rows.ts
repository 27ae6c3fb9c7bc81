import { Effect } from "effect"
import type {
  FilePurpose,
  PortError,
  StoredFile,
  Tenant,
  Transaction,
} from "../../../core/index.ts"
import { scheduleDeletion } from "../blobs/deletion-queue.ts"
import { adjustQuota } from "../blobs/quota.ts"
import type { FilesDeps } from "../deps.ts"
import type { FileRow, FilesTables } from "../tables.ts"
import type { Uploader } from "../tenant.ts"

export type NewFileRow = Pick<
  FileRow,
  "id" | "filename" | "purpose" | "status" | "blob_key" | "expires_at" | "counted" | "metadata"
> & { readonly tenant: Uploader; readonly bytes: number }

export const toStored = (row: FileRow): StoredFile => ({
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
  keyId: row.key_id ?? undefined,
  metadata: row.metadata,
})

/** Ids of another form never reach the database. */
export const isFileId = (id: string): boolean => /^file-[\w-]{1,80}$/.test(id)

const files = ({ database }: FilesDeps, tx?: Transaction) =>
  database.queries<FilesTables>(tx).selectFrom("files_file")

/**
 * Finds a file that is neither deleted nor expired: it expires at its time, not when the sweeper
 * runs.
 */
export const findFile = (
  deps: FilesDeps,
  { account, mode }: Tenant,
  id: string,
): Effect.Effect<FileRow | undefined, PortError> => {
  if (!isFileId(id)) return Effect.succeed(undefined)
  const now = new Date(deps.clock.nowMs())
  return deps.database.run(() =>
    files(deps)
      .selectAll()
      .where("id", "=", id)
      .where("account", "=", account)
      .where("mode", "=", mode)
      .where("deleted_at", "is", null)
      .where("expires_at", ">", now)
      .executeTakeFirst(),
  )
}

/** A knowledge file waits for its observer, where there is one. */
const statusOf = ({ observers }: FilesDeps, { purpose, status }: NewFileRow) =>
  purpose === "knowledge" && observers.length === 0 ? "processed" : status

/** Inserts the row, and what the observers make of it. */
export const insertFile = (
  deps: FilesDeps,
  file: NewFileRow,
  tx: Transaction,
): Effect.Effect<FileRow, PortError> =>
  Effect.gen(function* () {
    const { database, clock, observers } = deps
    const { tenant, metadata, ...rest } = file
    const values = {
      ...rest,
      account: tenant.account,
      mode: tenant.mode,
      key_id: tenant.keyId ?? null,
      metadata: JSON.stringify(metadata),
      status: statusOf(deps, file),
      observed: observers.length > 0,
      bytes: BigInt(file.bytes),
      created_at: new Date(clock.nowMs()),
    }
    const row = yield* database.run(() =>
      database
        .queries<FilesTables>(tx)
        .insertInto("files_file")
        .values(values)
        .returningAll()
        .executeTakeFirstOrThrow(),
    )
    for (const observer of observers) yield* observer.created(toStored(row), tx)
    return row
  })

/**
 * Returns the blob's key, for `deleteBlobs` after the commit; undefined when there was no such
 * file.
 */
export const deleteFile = (
  deps: FilesDeps,
  { account, mode }: Tenant,
  id: string,
  tx: Transaction,
  waitMs?: number,
): Effect.Effect<string | undefined, PortError> =>
  Effect.gen(function* () {
    const { database, clock } = deps
    const row = yield* database.run(() =>
      database
        .queries<FilesTables>(tx)
        .updateTable("files_file")
        .set({ status: "deleted", deleted_at: new Date(clock.nowMs()) })
        .where("id", "=", id)
        .where("account", "=", account)
        .where("mode", "=", mode)
        .where("deleted_at", "is", null)
        .returningAll()
        .executeTakeFirst(),
    )
    if (!row) return undefined
    for (const observer of deps.observers)
      yield* observer.removed({ account: row.account, mode: row.mode }, id, tx)
    yield* scheduleDeletion(deps, [row.blob_key], tx, waitMs)
    if (row.counted) yield* adjustQuota(database, row, { bytes: -Number(row.bytes), files: -1 }, tx)
    return row.blob_key
  })

export interface FileListing {
  readonly purpose: FilePurpose | undefined
  readonly limit: number
  readonly order: "asc" | "desc"
  /** List only what comes after this `seq`. */
  readonly after: bigint | undefined
}

export const listFiles = (
  deps: FilesDeps,
  { account, mode }: Tenant,
  { purpose, limit, order, after }: FileListing,
): Effect.Effect<readonly FileRow[], PortError> =>
  deps.database.run(() => {
    let query = files(deps)
      .selectAll()
      .where("account", "=", account)
      .where("mode", "=", mode)
      .where("deleted_at", "is", null)
      .where("expires_at", ">", new Date(deps.clock.nowMs()))
      .orderBy("seq", order)
      .limit(limit)
    if (purpose !== undefined) query = query.where("purpose", "=", purpose)
    if (after !== undefined) query = query.where("seq", order === "desc" ? "<" : ">", after)
    return query.execute()
  })

/**
 * Returns the file's `seq`, also that of a deleted file: a client that deletes while it pages still
 * gets the next page.
 */
export const seqOfFile = (
  deps: FilesDeps,
  { account, mode }: Tenant,
  id: string,
): Effect.Effect<bigint | undefined, PortError> => {
  if (!isFileId(id)) return Effect.succeed(undefined)
  return Effect.map(
    deps.database.run(() =>
      files(deps)
        .select("seq")
        .where("id", "=", id)
        .where("account", "=", account)
        .where("mode", "=", mode)
        .executeTakeFirst(),
    ),
    (row) => row?.seq,
  )
}
