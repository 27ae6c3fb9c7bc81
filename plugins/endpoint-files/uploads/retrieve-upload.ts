import { Effect } from "effect"
import type { PlanError, Tenant } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { findFile } from "../files/file-rows.ts"
import type { FileRow, UploadRow } from "../tables.ts"
import { findUpload, statusOfUpload } from "./upload-rows.ts"

/** With the file that it became, while that lives. */
export const retrieveUpload = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<
  {
    readonly upload: UploadRow
    readonly status: UploadRow["status"]
    readonly file: FileRow | undefined
  },
  PlanError
> =>
  Effect.gen(function* () {
    const upload = yield* findUpload(deps, tenant, id)
    const file = upload.file_id === null ? undefined : yield* findFile(deps, tenant, upload.file_id)
    return { upload, status: statusOfUpload(upload, deps.clock.nowMs()), file }
  })
