import { Effect, Stream } from "effect"
import {
  apiError,
  type BlobMissing,
  type FilePurpose,
  type PlanError,
  type Reply,
  type Tenant,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FileRow } from "../tables.ts"
import { extensionOf } from "./file-name.ts"
import { findFile } from "./file-rows.ts"

/** RFC 8187: what `encodeURIComponent` leaves, but `attr-char` does not have, is encoded too. */
const extended = (name: string): string =>
  encodeURIComponent(name).replace(
    /['()*!]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/**
 * Always a download, never shown in place. `filename` is for clients that don't know `filename*`
 * (RFC 6266).
 */
export const attachment = (name: string): string =>
  `attachment; filename="${name.replace(/[^A-Za-z0-9 ._-]/g, "_")}"; filename*=UTF-8''${extended(name)}`

const byExtension = new Map([
  ["pdf", "application/pdf"],
  ["txt", "text/plain; charset=utf-8"],
  ["md", "text/markdown; charset=utf-8"],
  ["html", "text/html; charset=utf-8"],
  ["htm", "text/html; charset=utf-8"],
  ["csv", "text/csv; charset=utf-8"],
  ["docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
])

const linesType = "application/jsonl"

/** What `mediaTypeOf` returns, without parameters. */
export const downloadTypes: readonly string[] = [
  linesType,
  ...new Set([...byExtension.values()].map((type) => type.split(";")[0]!)),
]

export const mediaTypeOf = (purpose: FilePurpose, name: string): string =>
  purpose === "knowledge"
    ? (byExtension.get(extensionOf(name)) ?? "application/octet-stream")
    : linesType

export const noSuchFile = () => apiError("not_found", "There is no such file.")

export const getFile = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<FileRow, PlanError> =>
  Effect.flatMap(findFile(deps, tenant, id), (row) =>
    row ? Effect.succeed(row) : Effect.fail(noSuchFile()),
  )

/** A file's bytes never change, so its id is a strong ETag on any store. */
const headersOf = (row: FileRow) => ({
  etag: `"${row.id}"`,
  "content-disposition": attachment(row.filename),
  "cache-control": "private, no-cache",
  "last-modified": row.created_at.toUTCString(),
})

/** A blob is missing without fault of ours when its file was deleted meanwhile. */
const goneOrMissing = (deps: FilesDeps, tenant: Tenant, id: string, missing: BlobMissing) =>
  Effect.andThen(getFile(deps, tenant, id), Effect.fail(missing))

/** An empty file has no range, whatever a store says of it. */
const linkOf = ({ storage }: FilesDeps, { blob_key, filename, purpose, bytes }: FileRow) =>
  storage.link === undefined || Number(bytes) === 0
    ? Effect.succeed(undefined)
    : storage.link(blob_key, {
        mediaType: mediaTypeOf(purpose, filename),
        disposition: attachment(filename),
      })

const bytesOf = (
  deps: FilesDeps,
  tenant: Tenant,
  row: FileRow,
  location: string | undefined,
): Reply<PlanError> => {
  const slice = (from: number, to: number) =>
    deps.storage
      .get(row.blob_key, { from, to })
      .pipe(
        Stream.catchTag("BlobMissing", (missing) =>
          Stream.fromEffect(goneOrMissing(deps, tenant, row.id, missing)),
        ),
      )
  const totalBytes = Number(row.bytes)
  const bytes = totalBytes === 0 ? Stream.empty : slice(0, totalBytes - 1)
  return {
    status: 200,
    headers: headersOf(row),
    mediaType: mediaTypeOf(row.purpose, row.filename),
    bytes,
    location,
    ranged: { totalBytes, slice },
  }
}

export const downloadFile = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<Reply<PlanError>, PlanError> =>
  Effect.gen(function* () {
    const row = yield* getFile(deps, tenant, id)
    // a HEAD request reads no bytes
    yield* Effect.catchTag(deps.storage.stat(row.blob_key), "BlobMissing", (missing) =>
      goneOrMissing(deps, tenant, id, missing),
    )
    return bytesOf(deps, tenant, row, yield* linkOf(deps, row))
  })
