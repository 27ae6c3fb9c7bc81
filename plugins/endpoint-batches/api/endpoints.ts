import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Call,
  defineEndpoint,
  type Endpoint,
  firstOf,
  freePlan,
  type Json,
  megabyte,
  PageQuery,
  type Plan,
  type PortError,
  placeOf,
  type Reply,
  type Tenant,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { Batch, BatchList, batchObject, CreateBatch } from "../wire.ts"
import { cancelBatch, findBatch, insertBatch, listBatches } from "./batch-store.ts"
import { type BatchRequest, inputOf, isPayable, readRequest } from "./create-request.ts"
import { makeForecaster } from "./forecast.ts"

const common = { access: "key", maxBodyBytes: megabyte } as const
const item = "/v1/batches/{id}"
const ok = (json: Json): Reply => ({ status: 200, json })

const createBatch = (deps: BatchDeps, request: BatchRequest) =>
  Effect.gen(function* () {
    const { caller, body, target } = request
    const { id: inputFileId } = yield* inputOf(deps, request)
    yield* isPayable(deps, request)
    const row = yield* insertBatch(deps, {
      tenant: caller.tenant,
      keyId: caller.keyId,
      endpoint: target.path,
      inputFileId,
      metadata: body.metadata ?? null,
    })
    return ok(batchObject(row))
  })

const create = (started: WhenStarted<BatchDeps>) => {
  const forecast = makeForecaster()
  return defineEndpoint<CreateBatch>({
    ...common,
    id: "batches.create",
    summary:
      "Runs the lines of a file at half the price, within 24 hours. A dry run checks every line and says what they would cost.",
    method: "POST",
    path: "/v1/batches",
    body: CreateBatch,
    reply: Batch,
    creates: true,
    plan: (call) =>
      Effect.gen(function* () {
        const deps = yield* started
        const request = yield* readRequest(deps, call)
        return { bound: {}, run: createBatch(deps, request), forecast: forecast(deps, request) }
      }),
  })
}

/** `check` is for dry runs. */
type Action = (deps: BatchDeps, tenant: Tenant) => Effect.Effect<Reply, ApiError | PortError>

const plan = (
  started: WhenStarted<BatchDeps>,
  { caller }: Call<Json>,
  action: Action,
  check?: (deps: BatchDeps, tenant: Tenant) => Effect.Effect<boolean, ApiError | PortError>,
): Effect.Effect<Plan, ApiError> =>
  Effect.flatMap(started, (deps) =>
    caller
      ? Effect.succeed(freePlan(action(deps, caller.tenant), check?.(deps, caller.tenant)))
      : Effect.fail(apiError("authentication_error")),
  )

const list = (started: WhenStarted<BatchDeps>) =>
  defineEndpoint({
    ...common,
    id: "batches.list",
    summary: "The batches, newest first; `limit` and `after` page.",
    method: "GET",
    path: "/v1/batches",
    body: "none",
    reply: BatchList,
    query: PageQuery,
    plan: (call) =>
      plan(started, call, (deps, tenant) =>
        Effect.gen(function* () {
          const { limit, after } = call.query
          const before = yield* placeOf(after, (id) =>
            Effect.map(findBatch(deps, tenant, id), (row) => row?.seq),
          )
          const found = firstOf(yield* listBatches(deps, tenant, limit + 1, before), call.query)
          return ok(toList(found.rows.map(batchObject), found.hasMore))
        }),
      ),
  })

const noSuchBatch = () => apiError("not_found", "There is no such batch.")

const existing = (deps: BatchDeps, tenant: Tenant, id: string) =>
  Effect.flatMap(findBatch(deps, tenant, id), (row) =>
    row ? Effect.succeed(row) : Effect.fail(noSuchBatch()),
  )

const retrieve = (started: WhenStarted<BatchDeps>) =>
  defineEndpoint({
    ...common,
    id: "batches.retrieve",
    summary: "One batch, with its status and counters.",
    method: "GET",
    path: item,
    body: "none",
    reply: Batch,
    plan: (call) =>
      plan(
        started,
        call,
        (deps, tenant) =>
          Effect.map(existing(deps, tenant, call.params.id ?? ""), (row) => ok(batchObject(row))),
        (deps, tenant) => Effect.as(existing(deps, tenant, call.params.id ?? ""), true),
      ),
  })

const cancel = (started: WhenStarted<BatchDeps>) =>
  defineEndpoint({
    ...common,
    id: "batches.cancel",
    summary:
      "Cancels a batch that has not ended, at once; its output so far is dropped, and lines that run are paid.",
    method: "POST",
    path: `${item}/cancel`,
    body: "none",
    reply: Batch,
    plan: (call) => {
      const { id = "" } = call.params
      const cancelling = (deps: BatchDeps, tenant: Tenant) =>
        Effect.gen(function* () {
          const cancelled = yield* cancelBatch(deps, tenant, id)
          if (cancelled) return ok(batchObject(cancelled))
          const { status } = yield* existing(deps, tenant, id)
          return yield* apiError(
            "conflict",
            `The batch is ${status} already, and can't be cancelled any more.`,
          )
        })
      return plan(started, call, cancelling, (deps, tenant) =>
        Effect.map(existing(deps, tenant, id), (row) => row.ended_at === null),
      )
    },
  })

/** All endpoints under `/v1/batches`. */
export const batchEndpoints = (started: WhenStarted<BatchDeps>): readonly Endpoint[] => [
  create(started),
  list(started),
  retrieve(started),
  cancel(started),
]
