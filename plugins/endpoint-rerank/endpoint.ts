import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { rupiahNumber } from "../../core/money.ts"
import { type Call, defineEndpoint, megabyte, type Plan } from "../../core/ports/endpoint.ts"
import type { RerankEvent, RerankRequest } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Ids } from "../../core/services/ids.ts"
import { RerankBody, RerankReply } from "./schema.ts"

export interface RerankEndpointDeps {
  readonly catalogue: Catalogue
  readonly ids: Ids
}

type Document = RerankBody["documents"][number]

const textOf = (document: Document): string =>
  typeof document === "string" ? document : document.text

const toRequest = ({ query, documents, instruction }: RerankBody): RerankRequest => ({
  query,
  documents: documents.map(textOf),
  ...(instruction && { instruction }),
})

/** A document as it was sent; Cohere's clients expect an object. */
const sent = (document: Document = "") =>
  typeof document === "string" ? { text: document } : document

/** Returns at most `top_n` results, best first; equal scores keep the order of the documents. */
export const rank = (events: readonly RerankEvent[], body: RerankBody): RerankReply["results"] =>
  [...events]
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, body.top_n ?? events.length)
    .map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(body.return_documents === true && { document: sent(body.documents[index]) }),
    }))

const toReply = (
  { ids }: RerankEndpointDeps,
  call: Call<RerankBody>,
  model: string,
  events: readonly RerankEvent[],
): RerankReply => {
  const used = call.used()
  return {
    id: ids.make("rerank-"),
    results: rank(events, call.body),
    meta: {
      billed_units: { search_units: used[model]?.searchUnits ?? 0 },
      cost_idr: rupiahNumber(call.cost()),
    },
  }
}

const cant = (param: string, why: string): Effect.Effect<never, ApiError> =>
  Effect.fail(apiError("unsupported_parameter", `${param}: ${why}`, { param }))

/** Refuses by name the fields of Cohere's API that would change the answer and are not kept. */
const checkFields = (
  { rank_fields, max_tokens_per_doc, documents }: RerankBody,
  window: number,
): Effect.Effect<void, ApiError> => {
  if (rank_fields && rank_fields.join() !== "text")
    return cant("rank_fields", 'only the field "text" of a document is ranked')
  const most = max_tokens_per_doc ?? window
  // a token has at least one byte
  const isShort = (document: Document) => Buffer.byteLength(textOf(document)) < most
  return most >= window || documents.every(isShort)
    ? Effect.void
    : cant("max_tokens_per_doc", `documents are cut at the model's window of ${window} tokens only`)
}

const plan = (deps: RerankEndpointDeps, call: Call<RerankBody>): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const { body, context } = call
    const entry = yield* deps.catalogue.require("rerank", body.model)
    const { task, contextTokens } = yield* deps.catalogue.open("rerank", entry.id)
    yield* checkFields(body, contextTokens)
    const { bound, run } = yield* task.plan(toRequest(body), context)
    const answer = Effect.gen(function* () {
      const events = yield* Stream.runCollect(run)
      if (new Set(events.map((event) => event.index)).size !== body.documents.length)
        return yield* apiError("backend_error", "The model did not score every document.")
      return { status: 200, json: toReply(deps, call, entry.id, events) }
    })
    return { bound: { [entry.id]: bound }, run: answer }
  })

export const makeRerankEndpoint = (deps: RerankEndpointDeps) =>
  defineEndpoint<RerankBody>({
    id: "rerank",
    summary: "Sorts documents by their relevance to a query.",
    method: "POST",
    path: "/v1/rerank",
    aliases: ["/v2/rerank"],
    access: "key",
    body: RerankBody,
    maxBodyBytes: 25 * megabyte,
    reply: RerankReply,
    creates: true,
    batchable: true,
    plan: (call) => plan(deps, call),
  })
