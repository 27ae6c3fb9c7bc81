import { Effect } from "effect"
import { type ApiError, apiError, type MultipartBody, type Tenant } from "../../core/index.ts"
import { checkHead, checkType, headOf } from "./content-check.ts"
import { readExpiresAfter } from "./expiry.ts"
import { fromForm, readFileName } from "./file-name.ts"
import { insertFile } from "./file-rows.ts"
import { type Fields, type FilePart, readForm } from "./form.ts"
import type { Failure } from "./free-plan.ts"
import type { FilesHouse } from "./house.ts"
import { beginIncoming, endIncoming, type Incoming } from "./incoming.ts"
import { readUploadPurpose, type UploadPurpose } from "./purpose.ts"
import { openIncoming, withQuota, write } from "./receive.ts"
import type { FileRow } from "./tables.ts"
import { changeUsage } from "./usage.ts"

interface TakenFile {
  readonly incoming: Incoming
  readonly name: string
  readonly bytes: number
  readonly head: Buffer
}

const readPurpose = (fields: Fields, name: string): Effect.Effect<UploadPurpose, ApiError> =>
  Effect.gen(function* () {
    const given = fields.get("purpose")
    if (given === undefined) return yield* apiError("invalid_request_error", "purpose: is missing", { param: "purpose" })
    const purpose = yield* readUploadPurpose(given)
    yield* checkType(purpose, name)
    return purpose
  })

const takeFile = (house: FilesHouse, tenant: Tenant, announcedBytes: number | undefined) => (part: FilePart, before: Fields) =>
  Effect.gen(function* () {
    const name = yield* readFileName(fromForm(part.filename), "file")
    // the earlier the better: where the purpose comes first, nothing is written in vain
    if (before.has("purpose")) yield* readPurpose(before, name)
    const incoming = yield* openIncoming(house, beginIncoming(house, tenant))
    const { head, keep } = headOf()
    const { bytes } = yield* write(house, incoming, withQuota(house, incoming, announcedBytes)(keep(part.bytes)), house.limits.maxFileBytes)
    return { incoming, name, bytes, head: head() } satisfies TakenFile
  })

interface Ready extends TakenFile {
  readonly purpose: UploadPurpose
  readonly keepMs: number
}

const nameIt = (house: FilesHouse, tenant: Tenant, { incoming, name, bytes, purpose, keepMs }: Ready) =>
  house.database.transaction((tx) =>
    Effect.gen(function* () {
      const held = yield* endIncoming(house, incoming, tx)
      const expires_at = new Date(house.clock.nowMs() + keepMs)
      const file = { id: house.ids.make("file-"), tenant, filename: name, purpose, blob_key: incoming.blobKey, bytes, expires_at, counted: true }
      const row = yield* insertFile(house, file, tx)
      yield* changeUsage(house.database, tenant, { bytes: bytes - held, files: 1 }, tx)
      return row
    }),
  )

/** Streams the file to the store while the form is read, and makes it a file once all of the form is good. */
export const createFile = (house: FilesHouse, tenant: Tenant, body: MultipartBody): Effect.Effect<FileRow, Failure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { fields, file } = yield* readForm(body, "file", takeFile(house, tenant, body.contentLength))
      const purpose = yield* readPurpose(fields, file.name)
      yield* checkHead(purpose, file.name, file.head)
      const expiresAfter = yield* readExpiresAfter(fields)
      return yield* nameIt(house, tenant, { ...file, purpose, keepMs: expiresAfter ? expiresAfter.seconds * 1000 : house.limits.keepMs })
    }),
  )
