import { hash } from "node:crypto"
import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { rupiahNumber } from "../../core/money.ts"
import { type Call, defineEndpoint, megabyte, type Plan } from "../../core/ports/endpoint.ts"
import type { RerankEvent, RerankRequest } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Ids } from "../../core/services/ids.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { RerankBody, RerankReply } from "./schema.ts"

export interface RerankEndpointDeps {
  readonly catalogue: Catalogue
  readonly ids: Ids
}

type Document = RerankBody["documents"][number]

const textOf = (document: Document): string =>
  typeof document === "string" ? document : document.text

const toRequest = (body: RerankBody): RerankRequest => ({
  query: body.query,
  documents: body.documents.map(textOf),
  ...(body.instruction && { instruction: body.instruction }),
  ...(body.max_tokens_per_doc && { maxDocumentTokens: body.max_tokens_per_doc }),
  ...(body.max_chunks_per_doc && { maxDocumentWindows: body.max_chunks_per_doc }),
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

const digestOf = (value: unknown): string => `sha256:${hash("sha256", JSON.stringify(value))}`

/** What a receipt says of a ranking. Results have no id of their own, so equal ones are equal bytes. */
export const evidenceOf = (
  { query, documents, instruction, top_n, return_documents, ...limits }: RerankBody,
  { id, backend, contextTokens, options }: ModelEntry,
  results: RerankReply["results"],
) => ({
  request: digestOf([
    ...[query, documents, instruction, top_n, return_documents === true],
    ...[limits.max_tokens_per_doc, limits.max_chunks_per_doc],
  ]),
  config: digestOf([id, backend, contextTokens, options]),
  answer: digestOf(results),
})

/** Other fields of Cohere's documents would change the order, and are not read. */
const checkFields = ({ rank_fields }: RerankBody): Effect.Effect<void, ApiError> =>
  !rank_fields || rank_fields.join() === "text"
    ? Effect.void
    : Effect.fail(
        apiError(
          "unsupported_parameter",
          'rank_fields: only the field "text" of a document is ranked',
          { param: "rank_fields" },
        ),
      )

const answerOf = Effect.fnUntraced(function* (
  deps: RerankEndpointDeps,
  call: Call<RerankBody>,
  entry: ModelEntry,
  run: Stream.Stream<RerankEvent, ApiError>,
) {
  const events = yield* Stream.runCollect(run)
  if (new Set(events.map((event) => event.index)).size !== call.body.documents.length)
    return yield* apiError("backend_error", "The model did not score every document.")
  const json = toReply(deps, call, entry.id, events)
  call.context.note?.(evidenceOf(call.body, entry, json.results))
  return { status: 200, json }
})

const plan = Effect.fnUntracedEager(function* (
  deps: RerankEndpointDeps,
  call: Call<RerankBody>,
): Effect.fn.Return<Plan, ApiError> {
  const { body, context } = call
  const entry = yield* deps.catalogue.require("rerank", body.model)
  const { task } = yield* deps.catalogue.open("rerank", entry.id)
  yield* checkFields(body)
  const { bound, run } = yield* task.plan(toRequest(body), context)
  return { bound: { [entry.id]: bound }, run: answerOf(deps, call, entry, run) }
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
