import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type PortError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables, PartRow, UploadRow } from "../tables.ts"

export const noSuchUpload = () => apiError("not_found", "There is no such upload.")
const conflict = (message: string) => Effect.fail(apiError("conflict", message))

const isUploadId = (id: string): boolean => /^upload_\w{1,80}$/.test(id)

/** Returns the status at `nowMs`: an upload expires at its time, not when the sweeper runs. */
export const statusOfUpload = (
  { status, expires_at }: UploadRow,
  nowMs: number,
): UploadRow["status"] =>
  status === "pending" && expires_at.getTime() <= nowMs ? "expired" : status

/** With `tx` the row stays locked until the transaction ends. */
export const findUpload = (
  { database }: FilesDeps,
  { account, mode }: Tenant,
  id: string,
  tx?: Transaction,
): Effect.Effect<UploadRow, ApiError | PortError> => {
  if (!isUploadId(id)) return Effect.fail(noSuchUpload())
  const found = database.run(() => {
    const query = database
      .queries<FilesTables>(tx)
      .selectFrom("files_upload")
      .selectAll()
      .where("id", "=", id)
      .where("account", "=", account)
      .where("mode", "=", mode)
    return (tx ? query.forUpdate() : query).executeTakeFirst()
  })
  return Effect.flatMap(found, (row) => (row ? Effect.succeed(row) : Effect.fail(noSuchUpload())))
}

/**
 * False for a completion whose server died: `completing` stays, but the lease of its
 * `files_incoming` row has ended.
 */
export const isCompleting = (
  { database, clock }: FilesDeps,
  { completing }: UploadRow,
  tx: Transaction,
): Effect.Effect<boolean, PortError> => {
  if (completing === null) return Effect.succeed(false)
  const alive = database.run(() =>
    database
      .queries<FilesTables>(tx)
      .selectFrom("files_incoming")
      .select("id")
      .where("id", "=", completing)
      .where("lease_until", ">", new Date(clock.nowMs()))
      .executeTakeFirst(),
  )
  return Effect.map(alive, (row) => row !== undefined)
}

/**
 * Returns the locked upload while it is open for parts, completion and cancellation; otherwise
 * fails with 404 or 409.
 */
export const lockOpenUpload = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
  tx: Transaction,
): Effect.Effect<UploadRow, ApiError | PortError> =>
  Effect.gen(function* () {
    const row = yield* findUpload(deps, tenant, id, tx)
    const status = statusOfUpload(row, deps.clock.nowMs())
    if (status !== "pending") return yield* conflict(`The upload is ${status}.`)
    if (yield* isCompleting(deps, row, tx)) return yield* conflict("The upload is being completed.")
    return row
  })

export const partsOf = (
  { database }: FilesDeps,
  upload: string,
  tx?: Transaction,
): Effect.Effect<readonly PartRow[], PortError> =>
  database.run(() =>
    database
      .queries<FilesTables>(tx)
      .selectFrom("files_part")
      .selectAll()
      .where("upload_id", "=", upload)
      .execute(),
  )

export const changeUpload = (
  { database }: FilesDeps,
  id: string,
  changes: Partial<Pick<UploadRow, "status" | "completing" | "file_id">>,
  tx: Transaction,
): Effect.Effect<UploadRow, PortError> =>
  database.run(() =>
    database
      .queries<FilesTables>(tx)
      .updateTable("files_upload")
      .set(changes)
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow(),
  )
