import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  type MultipartBody,
  type PlanError,
  type Strings,
} from "../../../core/index.ts"
import { beginIncoming, endIncoming, type Incoming } from "../blobs/incoming.ts"
import { adjustQuota, fitsQuota } from "../blobs/quota.ts"
import { openIncoming, withQuota, write } from "../blobs/receive.ts"
import type { FilesDeps } from "../deps.ts"
import type { FileRow } from "../tables.ts"
import type { Uploader } from "../tenant.ts"
import { checkHead, checkType, headOf } from "./content-check.ts"
import { readExpiresAfter } from "./expires-after.ts"
import { fromForm, readFileName } from "./file-name.ts"
import { insertFile } from "./file-rows.ts"
import { type Fields, type FilePart, readForm } from "./form.ts"
import { readMetadata } from "./metadata.ts"
import { readUploadPurpose, statusOnUpload, type UploadPurpose } from "./purpose.ts"

const tooLarge = (maxBytes: number): ApiError =>
  apiError("payload_too_large", `The file is larger than ${maxBytes} bytes, the limit.`, {
    param: "file",
  })

const readPurpose = (
  fields: Fields,
  name: string,
): Effect.Effect<Pick<ReceivedFile, "purpose" | "status">, ApiError> =>
  Effect.gen(function* () {
    const given = fields.get("purpose")
    if (given === undefined)
      return yield* apiError("invalid_request_error", "purpose: is missing", { param: "purpose" })
    const purpose = yield* readUploadPurpose(given)
    yield* checkType(purpose, name, "file")
    return { purpose, status: statusOnUpload(given) }
  })

/**
 * Checks the name before the bytes are read, and the purpose where its field came first: a wrong
 * one then writes nothing.
 */
const readName = ({ filename }: FilePart, before: Fields): Effect.Effect<string, ApiError> =>
  Effect.gen(function* () {
    const name = yield* readFileName(fromForm(filename), "file")
    if (before.has("purpose")) yield* readPurpose(before, name)
    return name
  })

/** Checks the fields once all of the form is read. */
const readRest = (
  { limits }: FilesDeps,
  fields: Fields,
  { name, head }: { readonly name: string; readonly head: Buffer },
) =>
  Effect.gen(function* () {
    const { purpose, status } = yield* readPurpose(fields, name)
    yield* checkHead(purpose, name, head, "file")
    const expiresAfter = yield* readExpiresAfter(fields)
    return {
      purpose,
      status,
      keepMs: expiresAfter ? expiresAfter.seconds * 1000 : limits.keepMs,
      metadata: yield* readMetadata(fields),
    }
  })

const takeFile =
  (deps: FilesDeps, tenant: Uploader, announcedBytes: number | undefined) =>
  (part: FilePart, before: Fields) =>
    Effect.gen(function* () {
      const name = yield* readName(part, before)
      const incoming = yield* openIncoming(deps, beginIncoming(deps, tenant))
      const { head, keep } = headOf()
      const { bytes } = yield* write(
        deps,
        incoming,
        withQuota(deps, incoming, announcedBytes)(keep(part.bytes)),
        deps.limits.maxFileBytes,
      ).pipe(Effect.catchTag("BlobTooLarge", ({ maxBytes }) => Effect.fail(tooLarge(maxBytes))))
      return { incoming, name, bytes, head: head() }
    })

interface ReceivedFile {
  readonly incoming: Incoming
  readonly name: string
  readonly bytes: number
  readonly purpose: UploadPurpose
  readonly status: FileRow["status"]
  readonly keepMs: number
  readonly metadata: Strings
}

const storeFile = (
  deps: FilesDeps,
  tenant: Uploader,
  { incoming, name, bytes, purpose, status, keepMs, metadata }: ReceivedFile,
) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const held = yield* endIncoming(deps, incoming, tx)
      const expires_at = new Date(deps.clock.nowMs() + keepMs)
      const file = {
        id: deps.ids.make("file-"),
        tenant,
        filename: name,
        ...{ purpose, status, metadata },
        blob_key: incoming.blobKey,
        bytes,
        expires_at,
        counted: true,
      }
      const row = yield* insertFile(deps, file, tx)
      yield* adjustQuota(deps.database, tenant, { bytes: bytes - held, files: 1 }, tx)
      return row
    }),
  )

/**
 * Streams the file to the store while the form is read, and inserts its row once all of the form is
 * valid.
 */
export const createFile = (
  deps: FilesDeps,
  tenant: Uploader,
  body: MultipartBody,
): Effect.Effect<FileRow, PlanError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { fields, file } = yield* readForm(
        body,
        "file",
        takeFile(deps, tenant, body.contentLength),
      )
      return yield* storeFile(deps, tenant, { ...file, ...(yield* readRest(deps, fields, file)) })
    }),
  )

const discardFile =
  ({ limits }: FilesDeps) =>
  (part: FilePart, before: Fields) =>
    Effect.gen(function* () {
      const name = yield* readName(part, before)
      const { head, keep } = headOf()
      let bytes = 0
      yield* Stream.runForEach(keep(part.bytes), (chunk) => {
        bytes += chunk.byteLength
        return bytes > limits.maxFileBytes
          ? Effect.fail(tooLarge(limits.maxFileBytes))
          : Effect.void
      })
      return { name, bytes, head: head() }
    })

/**
 * For a dry run: refuses what `createFile` refuses, and keeps nothing. Returns whether the file
 * fits the quota.
 */
export const checkFile = (
  deps: FilesDeps,
  tenant: Uploader,
  body: MultipartBody,
): Effect.Effect<boolean, PlanError> =>
  Effect.gen(function* () {
    const { fields, file } = yield* readForm(body, "file", discardFile(deps))
    yield* readRest(deps, fields, file)
    return yield* fitsQuota(deps.database, deps.limits, tenant, file.bytes)
  })
