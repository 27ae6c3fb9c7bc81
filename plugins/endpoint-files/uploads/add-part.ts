import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type MultipartBody,
  megabyte,
  type PlanError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import { beginIncoming, endIncoming } from "../blobs/incoming.ts"
import { openIncoming, write } from "../blobs/receive.ts"
import type { FilesDeps } from "../deps.ts"
import { type FilePart, readForm } from "../files/form.ts"
import type { FilesTables, PartRow, UploadRow } from "../tables.ts"
import { lockOpenUpload, partsOf } from "./upload-rows.ts"
import { maxParts } from "./upload-schema.ts"

/** The default part size of the official clients. */
export const maxPartBytes = 64 * megabyte

const tooLarge = () =>
  apiError("payload_too_large", `data: parts have at most ${maxPartBytes} bytes`, { param: "data" })
const wrong = (why: string): ApiError =>
  apiError("invalid_request_error", `data: ${why}`, { param: "data" })

/**
 * A client sends a part again when its reply got lost, so the parts may sum up to more than the
 * file, but not to more than twice its size.
 */
const checkRoom = (deps: FilesDeps, upload: UploadRow, bytes: number, tx: Transaction) =>
  Effect.gen(function* () {
    const parts = yield* partsOf(deps, upload.id, tx)
    const all = parts.reduce((sum, part) => sum + Number(part.bytes), bytes)
    if (parts.length >= maxParts) return yield* wrong(`an upload has at most ${maxParts} parts`)
    if (all > 2 * Number(upload.bytes))
      return yield* wrong("the parts together are more than twice the bytes of the upload")
  })

const begin = (deps: FilesDeps, tenant: Tenant, id: string) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const upload = yield* lockOpenUpload(deps, tenant, id, tx)
      yield* checkRoom(deps, upload, 0, tx)
      return {
        ...(yield* beginIncoming(deps, tenant, tx)),
        maxBytes: Math.min(maxPartBytes, Number(upload.bytes)),
      }
    }),
  )

const takePart = (deps: FilesDeps, tenant: Tenant, id: string) => (part: FilePart) =>
  Effect.gen(function* () {
    const incoming = yield* openIncoming(deps, begin(deps, tenant, id))
    const written = write(deps, incoming, part.bytes, incoming.maxBytes)
    const { bytes } = yield* Effect.catchTag(written, "BlobTooLarge", ({ maxBytes }) =>
      Effect.fail(
        maxBytes === maxPartBytes ? tooLarge() : wrong("the part is larger than the upload"),
      ),
    )
    if (bytes === 0) return yield* wrong("the part is empty")
    return { incoming, bytes }
  })

/** Parts may come in any order and concurrently; `complete` names those that make the file. */
export const addPart = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
  body: MultipartBody,
): Effect.Effect<PartRow, PlanError> => {
  const { database, clock, ids } = deps
  return Effect.scoped(
    Effect.gen(function* () {
      const { file } = yield* readForm(body, "data", takePart(deps, tenant, id))
      return yield* database.transaction((tx) =>
        Effect.gen(function* () {
          const upload = yield* lockOpenUpload(deps, tenant, id, tx)
          yield* checkRoom(deps, upload, file.bytes, tx)
          yield* endIncoming(deps, file.incoming, tx)
          const row = {
            id: ids.make("part_"),
            upload_id: id,
            bytes: BigInt(file.bytes),
            blob_key: file.incoming.blobKey,
            created_at: new Date(clock.nowMs()),
          }
          return yield* database.run(() =>
            database
              .queries<FilesTables>(tx)
              .insertInto("files_part")
              .values(row)
              .returningAll()
              .executeTakeFirstOrThrow(),
          )
        }),
      )
    }),
  )
}
