import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Call,
  defineEndpoint,
  firstCharacters,
  type Json,
  megabyte,
  type Plan,
  type Tenant,
  usageOf,
  type WhenStarted,
} from "../../../core/index.ts"
import type { SearchDeps } from "../search/deps.ts"
import { checkFiles } from "../search/known-files.ts"
import { planQuery } from "../search/query-vector.ts"
import { planRerank } from "../search/rerank.ts"
import type { Restriction } from "../search/scope.ts"
import { search } from "../search/search.ts"
import { toReply } from "./reply-encoding.ts"
import { maxPage, RetrievalBody, RetrievalReply, strictFields } from "./schema.ts"

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/** A mistyped filter must not make the search wider than it was meant, in silence. */
const refuseUnknown = (body: Json): ApiError | undefined => {
  for (const [path, known] of Object.entries(strictFields)) {
    const value = path.split(".").reduce<unknown>(fieldOf, body)
    if (typeof value !== "object" || value === null || Array.isArray(value)) continue
    const unknown = Object.keys(value).find((name) => !known.includes(name))
    if (unknown === undefined) continue
    const param = `${path}.${firstCharacters(unknown, 64)}`
    const message = `${param}: is not known here; fields are ${known.join(", ")}`
    return apiError("invalid_request_error", message, { param })
  }
  return undefined
}

/** The call path lets no request through without a key. */
const tenantOf = ({ caller }: Call<RetrievalBody>): Effect.Effect<Tenant, ApiError> =>
  caller ? Effect.succeed(caller.tenant) : Effect.fail(apiError("authentication_error"))

const restrictionOf = ({ file_ids, filters }: RetrievalBody): Restriction => ({
  fileLists: [file_ids, filters?.file_ids].filter((list) => list !== null && list !== undefined),
  metadata: filters?.metadata,
  ...(filters?.pages && {
    pages: { from: filters.pages.from ?? 1, to: filters.pages.to ?? maxPage },
  }),
})

const vectorWeightOf = ({ hybrid }: RetrievalBody): number | undefined =>
  typeof hybrid === "object" && hybrid ? hybrid.weight : hybrid ? 0.5 : undefined

const check = (deps: SearchDeps, tenant: Tenant, { file_ids, filters }: RetrievalBody) =>
  Effect.andThen(
    checkFiles(deps, tenant, file_ids ?? [], "file_ids"),
    checkFiles(deps, tenant, filters?.file_ids ?? [], "filters.file_ids"),
  )

const plan = (
  started: WhenStarted<SearchDeps>,
  call: Call<RetrievalBody>,
): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const deps = yield* started
    const tenant = yield* tenantOf(call)
    const { body } = call
    const planned = yield* planQuery(deps, call, body)
    const limit = body.top_k ?? 5
    const reranker = body.rerank
      ? yield* planRerank(deps, call, body, body.rerank, limit)
      : undefined
    const checked = check(deps, tenant, body)
    const run = Effect.gen(function* () {
      yield* checked
      const { vector, space } = yield* planned.embed
      const result = yield* search(deps, {
        tenant,
        space,
        vector,
        limit,
        reranker,
        query: body.query,
        restriction: restrictionOf(body),
        vectorWeight: vectorWeightOf(body),
        neighbours: body.neighbours ?? 0,
        time: call.context.time,
      })
      const used = call.used()
      const json = toReply(body, result, {
        space,
        index: deps.vectors.name,
        embeddingModel: planned.model,
        rerankModel: reranker?.model,
        queryTokens: planned.queryTokens,
        billedTokens: used[planned.model]?.inputTokens ?? 0,
        searchUnits: used[reranker?.model ?? ""]?.searchUnits ?? 0,
      })
      return { status: 200, headers: { "x-embedding-space": space.id }, json }
    })
    const bound = {
      [planned.model]: planned.bound,
      ...(reranker && { [reranker.model]: reranker.bound }),
    }
    // the tokens that a rerank model reads are no tokens of the request
    const shown = {
      [planned.model]: planned.bound,
      ...(reranker && { [reranker.model]: usageOf({ searchUnits: 1 }) }),
    }
    const forecast = Effect.map(checked, () => ({
      bound: shown,
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
    refuses: refuseUnknown,
    maxBodyBytes: megabyte,
    reply: RetrievalReply,
    creates: true,
    batchable: true,
    plan: (call) => plan(started, call),
  })
