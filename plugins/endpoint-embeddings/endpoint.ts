import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import {
  type Call,
  defaultBounds,
  defineEndpoint,
  megabyte,
  type Plan,
} from "../../core/ports/endpoint.ts"
import type { EmbedEvent } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { toReply, toText } from "./reply-encoding.ts"
import { namedAsSent, type ReadItem, readItems } from "./request-decoding.ts"
import { type EmbeddingsBody, EmbeddingsReply, embeddingsBody, firstImage } from "./schema.ts"
import { defaultMaxInputs } from "./settings.ts"

export interface EmbeddingsEndpointDeps {
  readonly catalogue: Catalogue
  /** The largest number of texts in a request. */
  readonly maxInputs?: number
}

/** Whether the model takes images says the catalogue: what it does not show has no price. */
const refuseImages = (catalogue: Catalogue, entry: ModelEntry, { input }: EmbeddingsBody) => {
  const at = catalogue.served(entry).modalities.includes("image") ? -1 : firstImage(input)
  return at < 0
    ? Effect.void
    : apiError("unsupported_parameter", `The model '${entry.id}' takes texts only, not images.`, {
        param: `input[${at}]`,
      })
}

const answerOf = (
  call: Call<EmbeddingsBody>,
  model: string,
  space: string,
  items: readonly ReadItem[],
  run: Stream.Stream<EmbedEvent, ApiError>,
) =>
  Effect.flatMap(Stream.runCollect(run), (events) =>
    Effect.mapEager(toReply(call, model, items, events), (json) => ({
      status: 200,
      headers: { "x-embedding-space": space },
      json,
      text: toText(json),
    })),
  )

const plan = Effect.fnUntracedEager(function* (
  { catalogue }: EmbeddingsEndpointDeps,
  call: Call<EmbeddingsBody>,
): Effect.fn.Return<Plan, ApiError> {
  const { body, context } = call
  const entry = yield* catalogue.require("embed", body.model)
  const items = yield* readItems(body)
  const { task, embeddingSpace = entry.id } = yield* catalogue.open("embed", entry.id)
  yield* refuseImages(catalogue, entry, body)
  const request = {
    items: items.map((item) => item.part),
    truncate: body.truncate ?? "END",
    ...(body.instruction && { instruction: body.instruction }),
  }
  const { bound, run } = yield* Effect.mapErrorEager(task.plan(request, context), (error) =>
    namedAsSent(body.input, error),
  )
  return {
    bound: { [entry.id]: bound },
    run: answerOf(call, entry.id, embeddingSpace, items, run),
  }
})

export const makeEmbeddingsEndpoint = (deps: EmbeddingsEndpointDeps) =>
  defineEndpoint<EmbeddingsBody>({
    id: "embeddings",
    summary: "Texts and images as vectors of one space.",
    method: "POST",
    path: "/v1/embeddings",
    access: "key",
    body: embeddingsBody(deps.maxInputs ?? defaultMaxInputs),
    maxBodyBytes: 25 * megabyte,
    // 64 texts of 8,192 tokens each
    bounds: { ...defaultBounds, elements: 600_000 },
    reply: EmbeddingsReply,
    creates: true,
    batchable: true,
    plan: (call) => plan(deps, call),
  })
