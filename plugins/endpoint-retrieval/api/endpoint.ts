import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Call,
  defineEndpoint,
  megabyte,
  type Plan,
  type Tenant,
  type WhenStarted,
} from "../../../core/index.ts"
import type { SearchDeps } from "../search/deps.ts"
import { planQuery } from "../search/query-vector.ts"
import { checkFiles } from "../search/scope.ts"
import { type Found, type SearchResult, search } from "../search/search.ts"
import { RetrievalBody, RetrievalReply, type RetrievalResult } from "./schema.ts"

/** The call path lets no request through without a key. */
const tenantOf = ({ caller }: Call<RetrievalBody>): Effect.Effect<Tenant, ApiError> =>
  caller ? Effect.succeed(caller.tenant) : Effect.fail(apiError("authentication_error"))

const toResult = (
  { include }: RetrievalBody,
  { fileId, index, text, score, page, start, end }: Found,
): RetrievalResult => ({
  file_id: fileId,
  chunk_index: index,
  text,
  score,
  ...(page !== null && (include?.includes("page") ?? true) && { page }),
  ...((include?.includes("offsets") ?? true) && { start, end }),
})

const toReply = (
  body: RetrievalBody,
  { found, reindexing }: SearchResult,
  tokens: { readonly queryTokens: number; readonly billedTokens: number },
): RetrievalReply => ({
  object: "list",
  results: found.map((one) => toResult(body, one)),
  query_tokens: tokens.queryTokens,
  billed_tokens: tokens.billedTokens,
  ...(reindexing > 0 && { reindexing }),
})

const plan = (
  started: WhenStarted<SearchDeps>,
  call: Call<RetrievalBody>,
): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const deps = yield* started
    const tenant = yield* tenantOf(call)
    const { body } = call
    const { bound, queryTokens, embed } = yield* planQuery(deps, call, body)
    const checked = checkFiles(deps, tenant, body.file_ids ?? [], "file_ids")
    const run = Effect.gen(function* () {
      yield* checked
      const { vector, space, billedTokens } = yield* embed
      const found = yield* search(deps, {
        tenant,
        space,
        vector,
        limit: body.top_k ?? 5,
        fileIds: body.file_ids,
      })
      return {
        status: 200,
        headers: { "x-embedding-space": space.id },
        json: toReply(body, found, { queryTokens, billedTokens }),
      }
    })
    const forecast = Effect.map(checked, () => ({
      bound,
      costMicros: call.price(bound),
      wouldSucceed: true,
      more: {},
    }))
    return { bound, run, forecast }
  })

export const makeRetrievalEndpoint = (started: WhenStarted<SearchDeps>) =>
  defineEndpoint<RetrievalBody>({
    id: "retrieval",
    summary: "Finds the places in processed knowledge files that fit a query best.",
    method: "POST",
    path: "/v1/retrieval",
    access: "key",
    body: RetrievalBody,
    maxBodyBytes: megabyte,
    reply: RetrievalReply,
    creates: true,
    batchable: true,
    plan: (call) => plan(started, call),
  })
