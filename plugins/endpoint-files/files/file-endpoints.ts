import { Effect } from "effect"
import {
  defineEndpoint,
  type Endpoint,
  freePlan,
  type MultipartBody,
  megabyte,
  type Reply,
  type Tenant,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { tenantOf } from "../tenant.ts"
import { checkFile, createFile } from "./create-file.ts"
import { downloadFile, downloadTypes, getFile, noSuchFile } from "./download.ts"
import { listFiles } from "./file-rows.ts"
import { DeletedFile, FileForm, FileList, FileReply, toFile } from "./file-schema.ts"
import { makeFiles } from "./files-service.ts"
import { ListQuery, toListing } from "./list-query.ts"

const one = { access: "key", path: "/v1/files/{id}", body: "none", maxBodyBytes: megabyte } as const
const ok = (json: unknown): Reply => ({ status: 200, json })

/** A dry run of what is done with one file says so where there is none. */
const isThere = (deps: FilesDeps, tenant: Tenant, id: string) =>
  Effect.as(getFile(deps, tenant, id), true)

const create = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint<MultipartBody>({
    id: "files.create",
    summary:
      "Uploads a file: a form with `file`, `purpose` (batch_input or knowledge), and `expires_after` where wanted. Files over 50 MB come through /v1/uploads.",
    method: "POST",
    path: "/v1/files",
    access: "key",
    body: "multipart",
    form: FileForm,
    maxBodyBytes: 50 * megabyte,
    reply: FileReply,
    creates: true,
    plan: (call) =>
      Effect.map(Effect.all([started, tenantOf(call)]), ([deps, tenant]) =>
        freePlan(
          Effect.map(createFile(deps, tenant, call.body), (row) => ok(toFile(row))),
          checkFile(deps, tenant, call.body),
        ),
      ),
  })

const list = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...one,
    id: "files.list",
    summary: "The files, newest first; `purpose` filters, `limit`, `after` and `order` page.",
    method: "GET",
    path: "/v1/files",
    reply: FileList,
    query: ListQuery,
    plan: (call) =>
      Effect.gen(function* () {
        const deps = yield* started
        const tenant = yield* tenantOf(call)
        const { query } = call
        const page = Effect.gen(function* () {
          const rows = yield* listFiles(deps, tenant, yield* toListing(deps, tenant, query))
          return ok(toList(rows.slice(0, query.limit).map(toFile), rows.length > query.limit))
        })
        return freePlan(page)
      }),
  })

const retrieve = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...one,
    id: "files.retrieve",
    summary: "One file.",
    method: "GET",
    reply: FileReply,
    plan: (call) =>
      Effect.map(Effect.all([started, tenantOf(call)]), ([deps, tenant]) =>
        freePlan(
          Effect.map(getFile(deps, tenant, call.params.id ?? ""), (row) => ok(toFile(row))),
          isThere(deps, tenant, call.params.id ?? ""),
        ),
      ),
  })

const content = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...one,
    id: "files.content",
    summary:
      "The bytes of a file; `Range`, `If-Range`, `If-Match`, `If-None-Match` and their dates are honoured.",
    method: "GET",
    path: "/v1/files/{id}/content",
    // some generators know only the first
    mediaTypes: ["application/octet-stream", ...downloadTypes],
    plan: (call) =>
      Effect.map(Effect.all([started, tenantOf(call)]), ([deps, tenant]) =>
        freePlan(
          downloadFile(deps, tenant, call.params.id ?? ""),
          isThere(deps, tenant, call.params.id ?? ""),
        ),
      ),
  })

const remove = (started: WhenStarted<FilesDeps>) =>
  defineEndpoint({
    ...one,
    id: "files.delete",
    summary: "Deletes a file: gone at once, its bytes within seconds.",
    method: "DELETE",
    reply: DeletedFile,
    plan: (call) =>
      Effect.map(Effect.all([started, tenantOf(call)]), ([deps, tenant]) => {
        const id = call.params.id ?? ""
        const removing = Effect.gen(function* () {
          yield* getFile(deps, tenant, id)
          if (!(yield* makeFiles(deps).remove(tenant, id))) return yield* noSuchFile()
          return ok({ id, object: "file", deleted: true, status: "deleted" })
        })
        return freePlan(removing, isThere(deps, tenant, id))
      }),
  })

export const fileEndpoints = (started: WhenStarted<FilesDeps>): readonly Endpoint[] => [
  create(started),
  list(started),
  retrieve(started),
  content(started),
  remove(started),
]
