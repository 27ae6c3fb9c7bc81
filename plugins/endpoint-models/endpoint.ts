import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import { defineEndpoint, type Plan } from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import { keepList } from "./kept-list.ts"
import { toModel } from "./reply-encoding.ts"
import { Model, ModelList } from "./schema.ts"

export interface ModelsEndpointDeps {
  readonly catalogue: Catalogue
  readonly clock: Clock
}

const free = (reply: { readonly json: Model | ModelList; readonly text?: string }): Plan => ({
  bound: {},
  run: Effect.succeed({ status: 200, ...reply }),
})

const common = { method: "GET", access: "public", body: "none", maxBodyBytes: 0 } as const

export const makeModelsEndpoint = ({ catalogue, clock }: ModelsEndpointDeps) => {
  const list = keepList(catalogue, Math.floor(clock.nowMs() / 1000))
  return defineEndpoint({
    ...common,
    id: "models.list",
    summary: "All models.",
    path: "/v1/models",
    reply: ModelList,
    plan: () => Effect.sync(() => free(list())),
  })
}

export const makeModelEndpoint = ({ catalogue, clock }: ModelsEndpointDeps) => {
  const created = Math.floor(clock.nowMs() / 1000)
  return defineEndpoint({
    ...common,
    id: "models.get",
    summary: "One model.",
    path: "/v1/models/{id}",
    reply: Model,
    plan: ({ params }) =>
      Effect.suspend(() => {
        const id = params.id ?? ""
        const entry = catalogue.entry(id)
        return entry
          ? Effect.succeed(free({ json: toModel(catalogue, entry, created, id) }))
          : Effect.fail(
              apiError("not_found", "There is no such model here; GET /v1/models lists them.", {
                param: "model",
              }),
            )
      }),
  })
}
