import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  type PlanError,
  type PortError,
  type Tenant,
} from "../../../core/index.ts"
import { deleteBlobs } from "../blobs/deletion-queue.ts"
import { beginIncoming, endIncoming, type Incoming } from "../blobs/incoming.ts"
import { openIncoming, write } from "../blobs/receive.ts"
import type { FilesDeps } from "../deps.ts"
import { checkHead, headOf } from "../files/content-check.ts"
import { insertFile } from "../files/file-rows.ts"
import type { FileRow, PartRow, UploadRow } from "../tables.ts"
import type { Uploader } from "../tenant.ts"
import { dropParts } from "./close-upload.ts"
import { changeUpload, findUpload, lockOpenUpload, partsOf } from "./upload-rows.ts"
import type { CompleteUpload } from "./upload-schema.ts"

const wrong = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${why}`, { param })

/**
 * Returns the named parts in the caller's order; each may be named once, and their sizes must sum
 * up to the announced size.
 */
const selectParts = (
  parts: readonly PartRow[],
  { id, bytes }: UploadRow,
  wanted: readonly string[],
): Effect.Effect<readonly PartRow[], ApiError> =>
  Effect.gen(function* () {
    const byId = new Map(parts.map((part) => [part.id, part]))
    const chosen: PartRow[] = []
    for (const [index, one] of wanted.entries()) {
      const part = byId.get(one)
      if (!part)
        return yield* wrong(
          `part_ids[${index}]`,
          `there is no such part of ${id}, or it was named before`,
        )
      byId.delete(one)
      chosen.push(part)
    }
    const sum = chosen.reduce((all, part) => all + part.bytes, 0n)
    if (sum !== bytes)
      return yield* wrong(
        "part_ids",
        `the parts have ${sum} bytes, but the upload was announced with ${bytes}`,
      )
    return chosen
  })

/** For a dry run: fails as `completeUpload` would for what it names. */
export const checkParts = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
  { part_ids }: CompleteUpload,
): Effect.Effect<void, ApiError | PortError> =>
  Effect.gen(function* () {
    const upload = yield* findUpload(deps, tenant, id)
    yield* selectParts(yield* partsOf(deps, id), upload, part_ids)
  })

interface Completion extends Incoming {
  readonly upload: UploadRow
  readonly parts: readonly PartRow[]
}

const begin = (
  deps: FilesDeps,
  tenant: Tenant,
  id: string,
  wanted: readonly string[],
): Effect.Effect<Completion, ApiError | PortError> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const upload = yield* lockOpenUpload(deps, tenant, id, tx)
      const parts = yield* selectParts(yield* partsOf(deps, id, tx), upload, wanted)
      const incoming = yield* beginIncoming(deps, tenant, tx)
      yield* changeUpload(deps, id, { completing: incoming.id }, tx)
      return { ...incoming, upload, parts }
    }),
  )

/** Joins the parts into one blob, and checks head and MD5 on the way. */
const join = (
  deps: FilesDeps,
  begun: Completion,
  md5: string | null | undefined,
): Effect.Effect<void, PlanError> =>
  Effect.gen(function* () {
    const { upload, parts } = begun
    const hash = createHash("md5")
    const { head, keep } = headOf()
    const joined = Stream.flatMap(Stream.fromIterable(parts), ({ blob_key }) =>
      deps.storage.get(blob_key),
    )
    const read = md5 ? Stream.tap(joined, (chunk) => Effect.sync(() => hash.update(chunk))) : joined
    yield* write(deps, begun, keep(read), Number(upload.bytes))
    if (md5 && hash.digest("hex") !== md5.toLowerCase())
      return yield* wrong("md5", "the parts have another checksum")
    yield* checkHead(upload.purpose, upload.filename, head(), "part_ids")
  })

/** Replaces the upload by its file, which takes over its share of the quota. */
const end = (deps: FilesDeps, tenant: Uploader, begun: Completion) => {
  const { database, clock, ids } = deps
  return database.transaction((tx) =>
    Effect.gen(function* () {
      const { id, filename, purpose, file_status, bytes, keep_ms, metadata, status, completing } =
        yield* findUpload(deps, tenant, begun.upload.id, tx)
      // too slow: the lease ended, and the sweeper gave the upload up
      if (status !== "pending" || completing !== begun.id)
        return yield* apiError("conflict", "The upload was given up.")
      yield* endIncoming(deps, begun, tx)
      const expires_at = new Date(clock.nowMs() + Number(keep_ms))
      const file = yield* insertFile(
        deps,
        {
          id: ids.make("file-"),
          tenant,
          filename,
          purpose,
          status: file_status,
          blob_key: begun.blobKey,
          bytes: Number(bytes),
          expires_at,
          counted: true,
          metadata,
        },
        tx,
      )
      const upload = yield* changeUpload(
        deps,
        id,
        { status: "completed", completing: null, file_id: file.id },
        tx,
      )
      return { upload, file, keys: yield* dropParts(deps, id, tx) }
    }),
  )
}

export const completeUpload = (
  deps: FilesDeps,
  tenant: Uploader,
  id: string,
  { part_ids, md5 }: CompleteUpload,
): Effect.Effect<{ readonly upload: UploadRow; readonly file: FileRow }, PlanError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const begun = yield* openIncoming(deps, begin(deps, tenant, id, part_ids))
      yield* join(deps, begun, md5)
      const { keys, ...done } = yield* end(deps, tenant, begun)
      yield* deleteBlobs(deps, keys)
      return done
    }),
  )
