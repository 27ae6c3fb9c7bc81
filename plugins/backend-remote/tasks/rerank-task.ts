import { Effect, Stream } from "effect"
import { apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type {
  ModelContext,
  ModelPlan,
  RerankEvent,
  RerankRequest,
  Task,
} from "../../../core/ports/model.ts"
import { usageOf } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import type { Feature } from "../kinds.ts"
import type { RemoteModel } from "../remote-model.ts"
import { failure } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import {
  ableOf,
  bytesOfToken,
  countOf,
  fieldsOf,
  type JsonAnswer,
  mostBytesOfToken,
  planJson,
  reading,
} from "./json-task.ts"

const templateTokens = 64
const garbled = (message: string) => failure("garbled", message)

/** Documents without text meet no query, and some servers refuse them: they are not sent. */
const blankScore = 0

interface Sent {
  readonly documents: readonly string[]
  /** Their places in the request. */
  readonly places: readonly number[]
  readonly blank: readonly number[]
}

const sentOf = ({ documents }: RerankRequest): Sent => {
  const places = [...documents.keys()].filter((at) => documents[at]!.trim() !== "")
  return {
    documents: places.map((at) => documents[at]!),
    places,
    blank: [...documents.keys()].filter((at) => documents[at]!.trim() === ""),
  }
}

const rerankBody = (request: RerankRequest, sent: Sent, { kind, options }: Upstream): Json => {
  const { query, instruction, maxDocumentTokens, maxDocumentWindows } = request
  return {
    model: options.model,
    query,
    [kind.rerank.documents]: sent.documents,
    ...(kind.rerank.documents === "texts" && { raw_scores: false, truncate: true }),
    ...(instruction !== undefined && { instruction }),
    ...(maxDocumentTokens !== undefined && { max_tokens_per_doc: maxDocumentTokens }),
    ...(maxDocumentWindows !== undefined && { max_chunks_per_doc: maxDocumentWindows }),
  }
}

const scoreOf = (value: unknown, isLogit: boolean): number => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw garbled("a score is no number")
  const score = isLogit ? 1 / (1 + Math.exp(-value)) : value
  if (score < 0 || score > 1) throw garbled("a score is not between 0 and 1")
  return score
}

/** Cohere's, Jina's and vLLM's `results`, or the list itself, as TEI and SGLang have it. */
const readScores = (answer: Json, sent: Sent, { kind }: Upstream): readonly RerankEvent[] => {
  const { results, data } = fieldsOf(answer)
  const list = Array.isArray(answer) ? answer : (results ?? data)
  if (!Array.isArray(list)) throw garbled("it sent no scores")
  const seen = new Set<unknown>()
  const events = list.map((one): RerankEvent => {
    const { index, relevance_score, score } = fieldsOf(one)
    const place = sent.places[index as number]
    if (place === undefined) throw garbled("a score is of no document")
    if (seen.has(index)) throw garbled("a document has two scores")
    seen.add(index)
    return { index: place, score: scoreOf(relevance_score ?? score, kind.logits === true) }
  })
  if (events.length !== sent.places.length) throw garbled("a document has no score")
  return events
}

/** Bytes that are read of the documents, and of the query beside each. */
const readBytes = (request: RerankRequest, { documents }: Sent, contextTokens: number): number => {
  const { query, maxDocumentTokens, maxDocumentWindows = Number.POSITIVE_INFINITY } = request
  const beside = Buffer.byteLength(query) + Buffer.byteLength(request.instruction ?? "")
  const most = Math.min(
    (maxDocumentTokens ?? Number.POSITIVE_INFINITY) * bytesOfToken,
    maxDocumentWindows * contextTokens * bytesOfToken,
  )
  return documents.reduce(
    (sum, document) => sum + beside + Math.min(most, Buffer.byteLength(document)),
    0,
  )
}

const readAnswer = (
  answer: Json,
  request: RerankRequest,
  sent: Sent,
  upstream: Upstream,
  contextTokens: number,
): JsonAnswer<RerankEvent> => {
  const { total_tokens, prompt_tokens } = fieldsOf(fieldsOf(answer).usage)
  const events = readScores(answer, sent, upstream)
  const reported = countOf(total_tokens) ?? countOf(prompt_tokens)
  const estimate = Math.ceil(readBytes(request, sent, contextTokens) / bytesOfToken)
  return {
    events: [...events, ...sent.blank.map((index) => ({ index, score: blankScore }))],
    usage: usageOf({ inputTokens: reported ?? estimate, searchUnits: 1 }),
    reported,
    mayBeSilent: true,
  }
}

/** Servers read the query with each document, or count it once; some cut documents to the window. */
const ownTexts = (request: RerankRequest, { documents }: Sent, contextTokens: number) => ({
  texts: [request.query, request.instruction ?? "", ...documents],
  range: ([query = 0, instruction = 0, ...counts]: readonly number[]) => {
    const { maxDocumentTokens, maxDocumentWindows } = request
    const read = counts.map((count) => Math.min(count, maxDocumentTokens ?? count))
    const all = read.reduce((sum, count) => sum + count, 0)
    const pairs = (query + instruction) * counts.length
    const windows = Math.max(1, maxDocumentWindows ?? 1)
    const cut = read.reduce((sum, count) => sum + Math.min(count, contextTokens * windows), 0)
    return {
      least: Math.floor(cut * 0.9),
      likely: all + pairs,
      // a document in several windows is read with the query in each
      most: Math.ceil((all + pairs) * 1.25) + templateTokens * counts.length + contextTokens,
    }
  },
})

/** Nothing to read: there is nothing to ask an upstream. */
const unread = (
  { id }: RemoteModel,
  { blank }: Sent,
  context: ModelContext,
): ModelPlan<RerankEvent> => {
  const usage = usageOf({ searchUnits: 1 })
  const metered = Stream.fromEffectDrain(Effect.sync(() => context.meter(id, usage)))
  const events = blank.map((index) => ({ index, score: blankScore }))
  return { bound: usage, run: Stream.concat(metered, Stream.fromIterable(events)) }
}

/** The rerank task of a remote model. */
export const makeRerankTask = (
  model: RemoteModel,
  fallback: FallbackOf<RerankRequest, RerankEvent>,
): Task<RerankRequest, RerankEvent> => ({
  plan: (request, context) =>
    Effect.suspend(() => {
      const { contextTokens, upstreams } = model
      const sent = sentOf(request)
      const { query, instruction = "" } = request
      const least = Math.floor(Buffer.byteLength(query + instruction) / mostBytesOfToken)
      if (least > contextTokens)
        return Effect.fail(
          apiError(
            "context_length_exceeded",
            `The query with its instruction has at least ${least} tokens; the model's window is ${contextTokens} tokens.`,
            { param: "query" },
          ),
        )
      const bytes = request.documents.reduce(
        (sum, document) =>
          sum + Buffer.byteLength(document) + Buffer.byteLength(query + instruction),
        0,
      )
      if (sent.documents.length === 0) return Effect.succeed(unread(model, sent, context))
      const asks = (feature: Feature, isAsked: boolean) => (isAsked ? [feature] : [])
      const wishes = [
        ...asks("instruction", request.instruction !== undefined),
        ...asks("max_tokens_per_doc", request.maxDocumentTokens !== undefined),
        ...asks("max_chunks_per_doc", request.maxDocumentWindows !== undefined),
      ]
      return planJson(model, fallback, {
        request,
        context,
        bound: usageOf({
          inputTokens: bytes + templateTokens * request.documents.length,
          searchUnits: 1,
        }),
        able: ableOf(upstreams, wishes),
        own: ownTexts(request, sent, contextTokens),
        callOf: (upstream) => ({
          path: upstream.kind.rerank.path,
          body: rerankBody(request, sent, upstream),
          read: reading((answer) => readAnswer(answer, request, sent, upstream, contextTokens)),
        }),
      })
    }),
})
