import { Effect, Stream } from "effect"
import { apiError, type Reply, type Tenant } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { type Failure, toApiError } from "../free-plan.ts"
import type { FileRow } from "../tables.ts"
import { attachment, mediaTypeOf } from "./disposition.ts"
import { findFile } from "./file-rows.ts"

export const noSuchFile = () => apiError("not_found", "There is no such file.")

export const getFile = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<FileRow, Failure> =>
  Effect.flatMap(findFile(deps, tenant, id), (row) =>
    row ? Effect.succeed(row) : Effect.fail(noSuchFile()),
  )

/** A file's bytes never change, so its id is the strongest ETag there is, on whatever store they lie. */
const headersOf = (row: FileRow) => ({
  etag: `"${row.id}"`,
  "content-disposition": attachment(row.filename),
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-cache",
  "last-modified": row.created_at.toUTCString(),
})

const bytesOf = (deps: FilesDeps, row: FileRow): Reply => {
  const slice = (from: number, to: number) =>
    Stream.mapError(deps.storage.get(row.blob_key, { from, to }), toApiError(deps.log))
  const totalBytes = Number(row.bytes)
  const bytes = totalBytes === 0 ? Stream.empty : slice(0, totalBytes - 1)
  return {
    status: 200,
    headers: headersOf(row),
    mediaType: mediaTypeOf(row.purpose, row.filename),
    bytes,
    ranged: { totalBytes, slice },
  }
}

export const downloadFile = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<Reply, Failure> =>
  Effect.gen(function* () {
    const row = yield* getFile(deps, tenant, id)
    // deleted between our look and the reader's first byte
    yield* Effect.catchTag(deps.storage.stat(row.blob_key), "BlobMissing", (missing) =>
      Effect.andThen(getFile(deps, tenant, id), Effect.fail(missing)),
    )
    return bytesOf(deps, row)
  })
