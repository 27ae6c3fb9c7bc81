import { Effect } from "effect"
import { apiError, type Tenant } from "../../../core/index.ts"
import { checkType } from "../content-check.ts"
import { readFileName } from "../file-name.ts"
import type { Failure } from "../free-plan.ts"
import type { FilesHouse } from "../house.ts"
import { readUploadPurpose } from "../purpose.ts"
import type { FilesTables, UploadRow } from "../tables.ts"
import { changeUsage, takeUsage } from "../usage.ts"
import type { CreateUpload } from "./wire.ts"

const uploadMs = 3_600_000

/** Takes the whole share of the quota now, so that a customer does not send 100 MB in vain. */
export const createUpload = (house: FilesHouse, tenant: Tenant, body: CreateUpload): Effect.Effect<UploadRow, Failure> =>
  Effect.gen(function* () {
    const { database, clock, ids, limits } = house
    const { bytes } = body
    const filename = yield* readFileName(body.filename, "filename")
    const purpose = yield* readUploadPurpose(body.purpose)
    yield* checkType(purpose, filename)
    if (bytes > limits.maxFileBytes) return yield* apiError("payload_too_large", `bytes: files have at most ${limits.maxFileBytes} bytes`, { param: "bytes" })
    const nowMs = clock.nowMs()
    const row = {
      ...{ id: ids.make("upload_"), account: tenant.account, mode: tenant.mode, filename, purpose, bytes: BigInt(bytes) },
      ...{ status: "pending" as const, completing: null, file_id: null },
      keep_ms: BigInt(body.expires_after ? body.expires_after.seconds * 1000 : limits.keepMs),
      created_at: new Date(nowMs),
      expires_at: new Date(nowMs + uploadMs),
    }
    return yield* database.transaction((tx) =>
      Effect.gen(function* () {
        yield* takeUsage(database, limits, tenant, { need: bytes, want: bytes }, tx)
        yield* changeUsage(database, tenant, { bytes: 0, files: 1 }, tx)
        return yield* database.run(() => database.queries<FilesTables>(tx).insertInto("files_upload").values(row).returningAll().executeTakeFirstOrThrow())
      }),
    )
  })
