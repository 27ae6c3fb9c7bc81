import { Effect, Schema } from "effect"
import {
  type ApiError,
  type Call,
  defineEndpoint,
  type Endpoint,
  fileField,
  freePlan,
  type MultipartBody,
  megabyte,
  type Plan,
  type PlanError,
  type Tenant,
  type WhenStarted,
} from "../../../core/index.ts"
import { fitsQuota } from "../blobs/quota.ts"
import type { FilesDeps } from "../deps.ts"
import { findFile } from "../files/file-rows.ts"
import type { FileRow, UploadRow } from "../tables.ts"
import { tenantOf, type Uploader } from "../tenant.ts"
import { addPart, maxPartBytes } from "./add-part.ts"
import { cancelUpload } from "./close-upload.ts"
import { checkParts, completeUpload } from "./complete-upload.ts"
import { createUpload, readUpload } from "./create-upload.ts"
import { findUpload, statusOfUpload } from "./upload-rows.ts"
import {
  CompleteUpload,
  CreateUpload,
  PartReply,
  toPart,
  toUpload,
  UploadReply,
} from "./upload-schema.ts"

const common = { access: "key", maxBodyBytes: megabyte } as const

/** True while an upload takes parts, and can be completed or cancelled. */
const isOpen = (deps: FilesDeps, tenant: Tenant, id: string) =>
  Effect.map(
    findUpload(deps, tenant, id),
    (upload) => statusOfUpload(upload, deps.clock.nowMs()) === "pending",
  )

const PartForm = Schema.Struct({ data: fileField }).annotate({ identifier: "UploadPartForm" })

/** The plan of an endpoint that replies with JSON. `check` is for dry runs. */
const planOf = <Body>(
  started: WhenStarted<FilesDeps>,
  call: Call<Body>,
  work: (deps: FilesDeps, tenant: Uploader, id: string) => Effect.Effect<unknown, PlanError>,
  check: (deps: FilesDeps, tenant: Tenant, id: string) => Effect.Effect<boolean, PlanError>,
): Effect.Effect<Plan, ApiError> =>
  Effect.map(Effect.all([started, tenantOf(call)]), ([deps, tenant]) =>
    freePlan(
      Effect.map(work(deps, tenant, call.params.id ?? ""), (json) => ({ status: 200, json })),
      check(deps, tenant, call.params.id ?? ""),
    ),
  )

const create = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...common,
    id: "uploads.create",
    summary: "Begins the upload of a file in parts, up to 100 MB. It expires after an hour.",
    method: "POST",
    path: "/v1/uploads",
    body: CreateUpload,
    reply: UploadReply,
    creates: true,
    plan: (call) =>
      Effect.gen(function* () {
        const deps = yield* started
        const tenant = yield* tenantOf(call)
        const upload = yield* readUpload(deps, call.body)
        const work = Effect.map(createUpload(deps, tenant, upload), (row) => ({
          status: 200,
          json: toUpload(row, row.status),
        }))
        return freePlan(work, fitsQuota(deps.database, deps.limits, tenant, upload.bytes))
      }),
  })

/** Returns the upload with the file that it became, unless that was deleted. */
const retrieveUpload = (
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

const retrieve = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...common,
    id: "uploads.retrieve",
    summary: "One upload.",
    method: "GET",
    path: "/v1/uploads/{id}",
    body: "none",
    reply: UploadReply,
    plan: (call) =>
      planOf(
        started,
        call,
        (deps, tenant, id) =>
          Effect.map(retrieveUpload(deps, tenant, id), ({ upload, status, file }) =>
            toUpload(upload, status, file),
          ),
        (deps, tenant, id) => Effect.as(findUpload(deps, tenant, id), true),
      ),
  })

const part = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint<MultipartBody>({
    ...common,
    id: "uploads.parts.create",
    summary: "Adds a part to an upload: a form with `data`.",
    method: "POST",
    path: "/v1/uploads/{id}/parts",
    body: "multipart",
    form: PartForm,
    // the part and the form around it
    maxBodyBytes: maxPartBytes + megabyte,
    reply: PartReply,
    creates: true,
    plan: (call) =>
      planOf(
        started,
        call,
        (deps, tenant, id) => Effect.map(addPart(deps, tenant, id, call.body), toPart),
        isOpen,
      ),
  })

const complete = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...common,
    id: "uploads.complete",
    summary:
      "Makes a file of the parts, in the order given; together they must have the bytes that were announced.",
    method: "POST",
    path: "/v1/uploads/{id}/complete",
    body: CompleteUpload,
    reply: UploadReply,
    creates: true,
    plan: (call) =>
      planOf(
        started,
        call,
        (deps, tenant, id) =>
          Effect.map(completeUpload(deps, tenant, id, call.body), ({ upload, file }) =>
            toUpload(upload, upload.status, file),
          ),
        (deps, tenant, id) =>
          Effect.flatMap(isOpen(deps, tenant, id), (open) =>
            open ? Effect.as(checkParts(deps, tenant, id, call.body), true) : Effect.succeed(false),
          ),
      ),
  })

const cancel = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...common,
    id: "uploads.cancel",
    summary: "Cancels an upload; its parts are dropped.",
    method: "POST",
    path: "/v1/uploads/{id}/cancel",
    body: "none",
    reply: UploadReply,
    plan: (call) =>
      planOf(
        started,
        call,
        (deps, tenant, id) =>
          Effect.map(cancelUpload(deps, tenant, id), (row) => toUpload(row, row.status)),
        isOpen,
      ),
  })

export const uploadEndpoints = (started: WhenStarted<FilesDeps>): readonly Endpoint[] => [
  create(started),
  retrieve(started),
  part(started),
  complete(started),
  cancel(started),
]
