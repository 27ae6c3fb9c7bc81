import { Effect } from "effect"
import {
  type ApiError,
  type Call,
  defineEndpoint,
  type Endpoint,
  type MultipartBody,
  megabyte,
  type Plan,
  type Tenant,
} from "../../../core/index.ts"
import type { OpenDeps } from "../deps.ts"
import { type Failure, freePlan } from "../free-plan.ts"
import { tenantOf } from "../tenant.ts"
import { hasRoom } from "../usage.ts"
import { addPart, maxPartBytes } from "./add-part.ts"
import { cancelUpload } from "./close-upload.ts"
import { completeUpload } from "./complete-upload.ts"
import { createUpload, readUpload } from "./create-upload.ts"
import { retrieveUpload } from "./retrieve-upload.ts"
import { CompleteUpload, CreateUpload, PartReply, toPart, toUpload, UploadReply } from "./wire.ts"

const common = { access: "key", maxBodyBytes: megabyte } as const

/** Every one of them answers with JSON. */
const planOf = <Body>(
  open: OpenDeps,
  call: Call<Body>,
  work: (tenant: Tenant, id: string) => Effect.Effect<unknown, Failure>,
): Effect.Effect<Plan, ApiError> =>
  Effect.map(tenantOf(call), (tenant) =>
    freePlan(
      open().log,
      Effect.map(work(tenant, call.params.id ?? ""), (json) => ({ status: 200, json })),
    ),
  )

const create = (open: OpenDeps) =>
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
        const tenant = yield* tenantOf(call)
        const deps = open()
        const upload = yield* readUpload(deps, call.body)
        const work = Effect.map(createUpload(deps, tenant, upload), (row) => ({
          status: 200,
          json: toUpload(row, row.status),
        }))
        return freePlan(deps.log, work, hasRoom(deps.database, deps.limits, tenant, upload.bytes))
      }),
  })

const retrieve = (open: OpenDeps) =>
  defineEndpoint({
    ...common,
    id: "uploads.retrieve",
    summary: "One upload.",
    method: "GET",
    path: "/v1/uploads/{id}",
    body: "none",
    reply: UploadReply,
    plan: (call) =>
      planOf(open, call, (tenant, id) =>
        Effect.map(retrieveUpload(open(), tenant, id), ({ upload, status, file }) =>
          toUpload(upload, status, file),
        ),
      ),
  })

const part = (open: OpenDeps) =>
  defineEndpoint<MultipartBody>({
    ...common,
    id: "uploads.parts.create",
    summary: "Adds a part to an upload: a form with `data`.",
    method: "POST",
    path: "/v1/uploads/{id}/parts",
    body: "multipart",
    // and room for the form around it
    maxBodyBytes: maxPartBytes + megabyte,
    reply: PartReply,
    creates: true,
    plan: (call) =>
      planOf(open, call, (tenant, id) =>
        Effect.map(addPart(open(), tenant, id, call.body), toPart),
      ),
  })

const complete = (open: OpenDeps) =>
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
      planOf(open, call, (tenant, id) =>
        Effect.map(completeUpload(open(), tenant, id, call.body), ({ upload, file }) =>
          toUpload(upload, upload.status, file),
        ),
      ),
  })

const cancel = (open: OpenDeps) =>
  defineEndpoint({
    ...common,
    id: "uploads.cancel",
    summary: "Cancels an upload; its parts are dropped.",
    method: "POST",
    path: "/v1/uploads/{id}/cancel",
    body: "none",
    reply: UploadReply,
    plan: (call) =>
      planOf(open, call, (tenant, id) =>
        Effect.map(cancelUpload(open(), tenant, id), (row) => toUpload(row, row.status)),
      ),
  })

export const uploadEndpoints = (open: OpenDeps): readonly Endpoint[] => [
  create(open),
  retrieve(open),
  part(open),
  complete(open),
  cancel(open),
]
