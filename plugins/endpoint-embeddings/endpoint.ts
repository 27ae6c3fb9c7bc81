import { Effect, Stream } from "effect"
import type { ApiError } from "../../core/errors.ts"
import {
  type Call,
  defaultBounds,
  defineEndpoint,
  megabyte,
  type Plan,
} from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { toReply } from "./reply-encoding.ts"
import { readItems } from "./request-decoding.ts"
import { EmbeddingsBody, EmbeddingsReply } from "./schema.ts"

export interface EmbeddingsEndpointDeps {
  readonly catalogue: Catalogue
}

const plan = (
  { catalogue }: EmbeddingsEndpointDeps,
  call: Call<EmbeddingsBody>,
): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const { body, context } = call
    const entry = yield* catalogue.require("embed", body.model)
    const items = yield* readItems(body)
    const { task, embeddingSpace = entry.id } = yield* catalogue.open("embed", entry.id)
    const request = {
      items: items.map((item) => item.part),
      truncate: body.truncate ?? "END",
      ...(body.instruction && { instruction: body.instruction }),
    }
    const { bound, run } = yield* task.plan(request, context)
    const answer = Effect.gen(function* () {
      const events = yield* Stream.runCollect(run)
      return {
        status: 200,
        headers: { "x-embedding-space": embeddingSpace },
        json: yield* toReply(call, entry.id, items, events),
      }
    })
    return { bound: { [entry.id]: bound }, run: answer }
  })

export const makeEmbeddingsEndpoint = (deps: EmbeddingsEndpointDeps) =>
  defineEndpoint<EmbeddingsBody>({
    id: "embeddings",
    summary: "Texts and images as vectors of one space.",
    method: "POST",
    path: "/v1/embeddings",
    access: "key",
    body: EmbeddingsBody,
    maxBodyBytes: 25 * megabyte,
    // 64 texts of 8,192 tokens each
    bounds: { ...defaultBounds, elements: 600_000 },
    reply: EmbeddingsReply,
    creates: true,
    batchable: true,
    plan: (call) => plan(deps, call),
  })
