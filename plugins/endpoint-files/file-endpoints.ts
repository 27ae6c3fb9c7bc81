import { Effect } from "effect"
import {
  defineEndpoint,
  type Endpoint,
  type MultipartBody,
  megabyte,
  type Reply,
  toList,
} from "../../core/index.ts"
import { checkFile, createFile } from "./create-file.ts"
import type { OpenDeps } from "./deps.ts"
import { downloadFile, getFile, noSuchFile } from "./download.ts"
import { listFiles } from "./file-rows.ts"
import { freePlan } from "./free-plan.ts"
import { readListQuery, toListing } from "./list-query.ts"
import { makeFiles } from "./make-files.ts"
import { tenantOf } from "./tenant.ts"
import { DeletedFile, FileList, FileReply, toFile } from "./wire.ts"

const one = { access: "key", path: "/v1/files/{id}", body: "none", maxBodyBytes: megabyte } as const
const ok = (json: unknown): Reply => ({ status: 200, json })

const create = (open: OpenDeps) =>
  defineEndpoint<MultipartBody>({
    id: "files.create",
    summary:
      "Uploads a file: a form with `file`, `purpose` (batch_input or knowledge), and `expires_after` where wanted. Files over 50 MB come through /v1/uploads.",
    method: "POST",
    path: "/v1/files",
    access: "key",
    body: "multipart",
    maxBodyBytes: 50 * megabyte,
    reply: FileReply,
    creates: true,
    plan: (call) =>
      Effect.map(tenantOf(call), (tenant) =>
        freePlan(
          open().log,
          Effect.map(createFile(open(), tenant, call.body), (row) => ok(toFile(row))),
          checkFile(open(), tenant, call.body),
        ),
      ),
  })

const list = (open: OpenDeps) =>
  defineEndpoint({
    ...one,
    id: "files.list",
    summary: "The files, newest first; `purpose` filters, `limit`, `after` and `order` page.",
    method: "GET",
    path: "/v1/files",
    reply: FileList,
    plan: (call) =>
      Effect.gen(function* () {
        const tenant = yield* tenantOf(call)
        const query = yield* readListQuery(call.query)
        const page = Effect.gen(function* () {
          const rows = yield* listFiles(open(), tenant, yield* toListing(open(), tenant, query))
          return ok(toList(rows.slice(0, query.limit).map(toFile), rows.length > query.limit))
        })
        return freePlan(open().log, page)
      }),
  })

const retrieve = (open: OpenDeps) =>
  defineEndpoint({
    ...one,
    id: "files.retrieve",
    summary: "One file.",
    method: "GET",
    reply: FileReply,
    plan: (call) =>
      Effect.map(tenantOf(call), (tenant) =>
        freePlan(
          open().log,
          Effect.map(getFile(open(), tenant, call.params.id ?? ""), (row) => ok(toFile(row))),
        ),
      ),
  })

const content = (open: OpenDeps) =>
  defineEndpoint({
    ...one,
    id: "files.content",
    summary:
      "The bytes of a file; `Range`, `If-Range`, `If-Match`, `If-None-Match` and their dates are honoured.",
    method: "GET",
    path: "/v1/files/{id}/content",
    plan: (call) =>
      Effect.map(tenantOf(call), (tenant) =>
        freePlan(open().log, downloadFile(open(), tenant, call.params.id ?? "")),
      ),
  })

const remove = (open: OpenDeps) =>
  defineEndpoint({
    ...one,
    id: "files.delete",
    summary: "Deletes a file: gone at once, its bytes within seconds.",
    method: "DELETE",
    reply: DeletedFile,
    plan: (call) =>
      Effect.map(tenantOf(call), (tenant) => {
        const id = call.params.id ?? ""
        const removing = Effect.gen(function* () {
          yield* getFile(open(), tenant, id)
          if (!(yield* makeFiles(open()).remove(tenant, id))) return yield* noSuchFile()
          return ok({ id, object: "file", deleted: true, status: "deleted" })
        })
        return freePlan(open().log, removing)
      }),
  })

export const fileEndpoints = (open: OpenDeps): readonly Endpoint[] => [
  create(open),
  list(open),
  retrieve(open),
  content(open),
  remove(open),
]
