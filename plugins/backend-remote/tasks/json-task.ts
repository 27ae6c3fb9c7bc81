import { Effect, Stream } from "effect"
import type { FormData } from "undici"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { ModelContext, ModelPlan } from "../../../core/ports/model.ts"
import type { Usage } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import { type CountRange, judged } from "../own-count.ts"
import { corrected, type RemoteModel } from "../remote-model.ts"
import { askJson } from "../upstream/ask-json.ts"
import { asApiError, type UpstreamFailure } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"

/** Bytes of text that a token stands for, about, where nobody counts it exactly. */
export const bytesOfToken = 4
/** What is longer than this has more tokens than the window, whatever the tokenizer. */
export const mostBytesOfToken = 16

export type Fields = Readonly<Record<string, unknown>>
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}
export const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** What an upstream made of a request. */
export interface JsonAnswer<Event> {
  readonly events: readonly Event[]
  readonly usage: Usage
  /** Tokens that the upstream says it read; undefined: it says none. */
  readonly reported: number | undefined
  /** Many servers of the kind never say it, which is nothing wrong. */
  readonly mayBeSilent?: true
}

/** A request whose answer is one JSON document, as one kind of upstream takes it. */
export interface JsonCall<Event> {
  readonly path: string
  readonly body: Json | FormData
  /** Fails where it is not what was asked for. */
  read(answer: Json): Effect.Effect<JsonAnswer<Event>, UpstreamFailure>
}

/** What reads an answer at once, and throws an `UpstreamFailure` where it is wrong. */
export const reading =
  <Event>(read: (answer: Json) => JsonAnswer<Event>): JsonCall<Event>["read"] =>
  (answer) =>
    Effect.try({ try: () => read(answer), catch: (cause) => cause as UpstreamFailure })

const maxAnswerBytes = 256 * 2 ** 20

interface Planned<Request, Event> {
  readonly request: Request
  readonly context: ModelContext
  readonly bound: Usage
  /** Those that keep all of the request, or its refusal. */
  readonly able: readonly Upstream[] | ApiError
  callOf(upstream: Upstream): JsonCall<Event>
  /** The texts that the model reads, and how many tokens there can be by the counts of these. */
  readonly own?: {
    readonly texts: readonly string[]
    range(counts: readonly number[]): CountRange
  }
}

export const isRefusal = (able: readonly Upstream[] | ApiError): able is ApiError =>
  !Array.isArray(able)

/** The upstreams that keep what `param` asks for; `feature` is its name among those of kinds. */
export const ableOf = (
  upstreams: readonly Upstream[],
  wishes: readonly Parameters<Upstream["features"]["has"]>[0][],
): readonly Upstream[] | ApiError => {
  const able = upstreams.filter(({ features }) => wishes.every((wish) => features.has(wish)))
  const missing = wishes.find((wish) => !upstreams.some(({ features }) => features.has(wish)))
  if (able.length > 0 || upstreams.length === 0) return able
  const param = missing ?? wishes[0]!
  return apiError(
    "unsupported_parameter",
    `${param}: the server behind this model does not keep it.`,
    { param },
  )
}

const within = (usage: Usage, bound: Usage): Usage => ({
  ...usage,
  inputTokens: Math.min(usage.inputTokens, bound.inputTokens),
})

/** Where nothing is counted here, a report that is missing is nothing to wake anybody for. */
const correct = (
  model: RemoteModel,
  upstream: Upstream,
  reported: number | undefined,
  counted: number | undefined,
): void => {
  if (counted !== undefined) {
    corrected(model, upstream, `${reported ?? "no"} tokens, counted here ${counted}`)
    return
  }
  model.metrics.corrected(upstream)
  model.log.debug("upstream.usage_estimated", "an upstream reports no usage that can be", {
    model: model.id,
    upstream: upstream.name,
  })
}

/** Runs a request at an upstream: all of its answer is there before the first event. */
export const planJson = <Request, Event>(
  model: RemoteModel,
  fallback: FallbackOf<Request, Event>,
  { request, context, bound, able, callOf, own }: Planned<Request, Event>,
): Effect.Effect<ModelPlan<Event>, ApiError> => {
  const { id, options, clock, metrics, counter } = model
  const ask = (upstream: Upstream) =>
    Effect.gen(function* () {
      const call = callOf(upstream)
      const timeoutMs = Math.min(options.firstByteTimeoutMs, context.deadlineMs - clock.nowMs())
      const limits = { timeoutMs, maxBytes: maxAnswerBytes }
      const json = yield* askJson(upstream, call.path, call.body, limits)
      return yield* call.read(json)
    })
  const served = Effect.gen(function* () {
    if (isRefusal(able)) return yield* able
    const done = yield* Effect.mapError(model.attempts(able, undefined, ask), asApiError)
    const { value, upstream, attempts } = done
    context.note?.({ served_by: { model: id, upstream: upstream.name, attempts } })
    const counts = own && counter ? yield* counter.count(own.texts) : undefined
    const judgement = own && counts && judged(value.reported, own.range(counts))
    const tokens = judgement?.tokens ?? value.usage.inputTokens
    context.meter(id, within({ ...value.usage, inputTokens: tokens }, bound))
    metrics.ended(upstream, "ok")
    const { reported, mayBeSilent = false } = value
    const isWrong =
      reported === undefined
        ? !mayBeSilent
        : (judgement?.isWrong ?? false) || reported > bound.inputTokens
    if (isWrong) correct(model, upstream, reported, judgement?.tokens)
    return Stream.fromIterable(value.events)
  })
  if (isRefusal(able) && options.fallback.length === 0) return Effect.fail(able)
  return Effect.succeed({
    bound,
    run: fallback({ request, context, bound }, Stream.unwrap(served)),
  })
}
