import { Effect } from "effect"
import { apiError, type PlanError, type Tenant } from "../../../core/index.ts"
import { adjustQuota, takeQuota } from "../blobs/quota.ts"
import type { FilesDeps } from "../deps.ts"
import { checkType } from "../files/content-check.ts"
import { readFileName } from "../files/file-name.ts"
import { readUploadPurpose, statusOnUpload } from "../files/purpose.ts"
import type { FilesTables, UploadRow } from "../tables.ts"
import type { CreateUpload } from "./upload-schema.ts"

const uploadMs = 3_600_000

/** Checks what needs no query. */
export const readUpload = ({ limits }: FilesDeps, body: CreateUpload) =>
  Effect.gen(function* () {
    const { bytes, expires_after } = body
    const filename = yield* readFileName(body.filename, "filename")
    const purpose = yield* readUploadPurpose(body.purpose)
    yield* checkType(purpose, filename, "filename")
    if (bytes > limits.maxFileBytes)
      return yield* apiError(
        "payload_too_large",
        `bytes: files have at most ${limits.maxFileBytes} bytes`,
        { param: "bytes" },
      )
    return {
      filename,
      purpose,
      fileStatus: statusOnUpload(body.purpose),
      bytes,
      keepMs: expires_after ? expires_after.seconds * 1000 : limits.keepMs,
      metadata: body.metadata ?? {},
    }
  })
type NewUpload = Effect.Success<ReturnType<typeof readUpload>>

/**
 * Takes the upload's whole share of the quota now, so that a customer does not send 100 MB in vain.
 */
export const createUpload = (
  deps: FilesDeps,
  tenant: Tenant,
  { filename, purpose, fileStatus, bytes, keepMs, metadata }: NewUpload,
): Effect.Effect<UploadRow, PlanError> => {
  const { database, clock, ids, limits } = deps
  const nowMs = clock.nowMs()
  const row = {
    ...{
      id: ids.make("upload_"),
      account: tenant.account,
      mode: tenant.mode,
      filename,
      purpose,
      bytes: BigInt(bytes),
    },
    ...{ status: "pending" as const, completing: null, file_id: null },
    file_status: fileStatus,
    keep_ms: BigInt(keepMs),
    metadata: JSON.stringify(metadata),
    created_at: new Date(nowMs),
    expires_at: new Date(nowMs + uploadMs),
  }
  return database.transaction((tx) =>
    Effect.gen(function* () {
      yield* takeQuota(database, limits, tenant, { need: bytes, want: bytes }, tx)
      yield* adjustQuota(database, tenant, { bytes: 0, files: 1 }, tx)
      return yield* database.run(() =>
        database
          .queries<FilesTables>(tx)
          .insertInto("files_upload")
          .values(row)
          .returningAll()
          .executeTakeFirstOrThrow(),
      )
    }),
  )
}
