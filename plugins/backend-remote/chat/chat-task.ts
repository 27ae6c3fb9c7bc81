import { hash } from "node:crypto"
import { Effect, Option, type Scope, Stream } from "effect"
import { type ApiError, apiError, isApiError } from "../../../core/errors.ts"
import type {
  ChatEvent,
  ChatRequest,
  ModelContext,
  ModelPlan,
  Task,
} from "../../../core/ports/model.ts"
import { type Usage, usageOf } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import { corrected, type RemoteModel } from "../remote-model.ts"
import type { Attempt } from "../upstream/attempts.ts"
import { asApiError, type UpstreamFailure } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import { ChatAnswer } from "./chat-answer.ts"
import { chatBody } from "./chat-body.ts"
import { asksForForm, runFormChecks } from "./chat-form.ts"
import { makeChatReader } from "./chat-reader.ts"
import { ChatUsage, type OwnCount } from "./chat-usage.ts"
import { ableFor, callableTools, hasMedia } from "./chat-wishes.ts"
import { countCall } from "./own-chat-count.ts"

/** The head of a prompt, by which it finds the upstream that has it in its cache. */
const headBytes = 2_048
const leastHeadBytes = 256

/** Tokens that a chat template adds, at most: in all, and to each message. */
const templateTokens = 256
const messageTokens = 32
/** What is longer than this has more tokens than the window, whatever the tokenizer. */
const mostBytesOfToken = 16

/** All text of the prompt, in its order. */
const promptText = (request: ChatRequest): string => {
  const tools = callableTools(request)
  const form = request.responseFormat?.type === "json_schema" ? [request.responseFormat.schema] : []
  const parts = request.messages.flatMap(({ role, content, reasoning, toolCalls = [] }) => [
    role,
    ...content.map((part) => (part.type === "text" ? part.text : "")),
    reasoning ?? "",
    ...toolCalls.flatMap((call) => [call.name, call.arguments]),
  ])
  return [...[...tools, ...form].map((value) => JSON.stringify(value)), ...parts].join("\n")
}

const tooLong = (atLeast: number, contextTokens: number): ApiError =>
  apiError(
    "context_length_exceeded",
    `The messages have at least ${atLeast} tokens, but the model's window is ${contextTokens} tokens. Shorten the messages.`,
    { param: "messages" },
  )

interface PromptSize {
  readonly bytes: number
  readonly head: string | undefined
}

const boundOf = (request: ChatRequest, { bytes }: PromptSize, contextTokens: number): Usage => {
  const { answers = 1, maxTokens, messages } = request
  const seesMedia = hasMedia(request)
  const most = bytes + templateTokens + messages.length * messageTokens
  const inputTokens = seesMedia ? contextTokens : Math.min(contextTokens, most)
  const outputTokens = answers * Math.min(maxTokens, contextTokens)
  return usageOf({
    inputTokens,
    imageTokens: seesMedia ? inputTokens : 0,
    cacheReadTokens: inputTokens,
    cacheWriteTokens: inputTokens,
    outputTokens,
    reasoningTokens: outputTokens,
  })
}

interface Opened {
  readonly usage: ChatUsage
  readonly answer: ChatAnswer
  readonly first: readonly ChatEvent[] | undefined
  /** The finishes; fails where the answer is not what was asked for. */
  readonly end: Effect.Effect<readonly ChatEvent[], UpstreamFailure>
  /** What is counted here of prompt and answer, as far as it has come. */
  readonly own: Effect.Effect<OwnCount | undefined>
  next(timeoutMs: number): Effect.Effect<readonly ChatEvent[] | undefined, UpstreamFailure>
}

/** One request to one upstream, up to the first event of its answer. */
const openAt =
  (
    model: RemoteModel,
    request: ChatRequest,
    size: PromptSize,
    bound: Usage,
    leftMs: () => number,
  ) =>
  (upstream: Upstream): Effect.Effect<Opened, UpstreamFailure, Scope.Scope> =>
    Effect.gen(function* () {
      const maxTokens = Math.min(request.maxTokens, model.contextTokens)
      const usage = new ChatUsage(size.bytes, bound, {
        caches: upstream.features.has("cache_control"),
        isCounted: model.counter !== undefined,
      })
      const answer = new ChatAnswer(request, maxTokens, usage)
      const firstMs = Math.min(model.options.firstByteTimeoutMs, leftMs())
      const body = chatBody(request, upstream, maxTokens)
      const reply = yield* upstream.connection.call("v1/chat/completions", body, firstMs)
      const { next } = yield* makeChatReader(reply, answer)
      const first = yield* next(firstMs)
      const end = endOf(model, answer)
      const { counter } = model
      const own =
        counter === undefined
          ? Effect.succeed(undefined)
          : Effect.suspend(() =>
              countCall(counter, request, answer, upstream.kind.hidesReasoning === true),
            )
      const opened: Opened = { usage, answer, first, next, own, end }
      // an answer without an end fails here, where another upstream may still serve it
      if (first === undefined) return { ...opened, end: Effect.succeed(yield* end) }
      const isHeld = model.options.formChecks === "retry" && asksForForm(request)
      return isHeld ? yield* whole(opened, model.options.idleTimeoutMs, leftMs) : opened
    })

/** The finishes of an answer that has ended, when all forms were checked. */
const endOf = ({ id, options, workers, log }: RemoteModel, answer: ChatAnswer) =>
  Effect.gen(function* () {
    const events = yield* Effect.try({ try: () => answer.end(), catch: asFailure })
    if (options.formChecks !== "off")
      yield* runFormChecks(answer.checks(), { workers, log, model: id })
    return events
  })

/** An answer that is held back until it has ended, so that one in a wrong form can be tried again. */
const whole = (
  { next, first = [], end, ...opened }: Opened,
  idleMs: number,
  leftMs: () => number,
): Effect.Effect<Opened, UpstreamFailure> =>
  Effect.gen(function* () {
    const events = [...first]
    while (true) {
      const page = yield* next(Math.min(idleMs, leftMs()))
      if (page === undefined) break
      events.push(...page)
    }
    const finishes = yield* end
    const ended = { next: () => Effect.succeed(undefined), end: Effect.succeed(finishes) }
    return { ...opened, first: events, ...ended }
  })

const asFailure = (cause: unknown) => cause as UpstreamFailure

/** The events of an opened answer, metered as they come. */
const eventsOf = (
  model: RemoteModel,
  context: ModelContext,
  { value, upstream, lost }: Attempt<Opened>,
  leftMs: () => number,
): Stream.Stream<ChatEvent, ApiError> => {
  const { usage, first, next, own, end } = value
  const { id, metrics } = model
  const finish = Effect.gen(function* () {
    const events = yield* end
    context.meter(id, usage.whole(yield* own))
    metrics.ended(upstream, "ok")
    if (usage.correction !== undefined) corrected(model, upstream, usage.correction)
    return events
  })
  const metered = (events: readonly ChatEvent[]): readonly ChatEvent[] => {
    context.meter(id, usage.soFar())
    return events
  }
  type Page = readonly [readonly ChatEvent[], Option.Option<boolean>]
  const page = (isFirst: boolean): Effect.Effect<Page, ApiError> =>
    Effect.gen(function* () {
      const events = isFirst ? first : yield* next(Math.min(model.options.idleTimeoutMs, leftMs()))
      return events === undefined
        ? ([yield* finish, Option.none()] as const)
        : ([metered(events), Option.some(false)] as const)
    }).pipe(
      Effect.mapError((why) => {
        lost(why)
        return asApiError(why)
      }),
    )
  return Stream.paginate(true, page)
}

/** The chat task of a remote model. */
export const makeChatTask = (
  model: RemoteModel,
  fallback: FallbackOf<ChatRequest, ChatEvent>,
): Task<ChatRequest, ChatEvent> => {
  const { upstreams, contextTokens, clock } = model
  const plan = (
    request: ChatRequest,
    context: ModelContext,
  ): Effect.Effect<ModelPlan<ChatEvent>, ApiError> =>
    Effect.gen(function* () {
      const able = ableFor(request, upstreams)
      if (isApiError(able) && model.options.fallback.length === 0) return yield* able
      const text = Buffer.from(promptText(request))
      const head =
        model.options.affinity === true && text.length >= leastHeadBytes
          ? hash("sha256", text.subarray(0, headBytes))
          : undefined
      const size: PromptSize = { bytes: text.length, head }
      const least = Math.floor(text.length / mostBytesOfToken)
      if (least > contextTokens) return yield* tooLong(least, contextTokens)
      const bound = boundOf(request, size, contextTokens)
      const leftMs = () => context.deadlineMs - clock.nowMs()
      const served = Effect.gen(function* () {
        if (isApiError(able)) return yield* able
        const opened = yield* model
          .attempts(able, head, openAt(model, request, size, bound, leftMs))
          .pipe(Effect.mapError(asApiError))
        yield* noteServed(model, context, opened)
        return eventsOf(model, context, opened, leftMs)
      })
      return { bound, run: fallback({ request, context, bound }, Stream.unwrap(served)) }
    })
  return { plan }
}

/** The receipt's line on who served; and what is metered of a call that the client leaves. */
const noteServed = (
  { id, metrics }: RemoteModel,
  context: ModelContext,
  { value, upstream, attempts }: Attempt<Opened>,
): Effect.Effect<void, never, Scope.Scope> => {
  const { answer, usage, own } = value
  const served = {
    model: id,
    upstream: upstream.name,
    upstream_model: answer.servedModel ?? upstream.options.model,
    attempts,
  }
  context.note?.({ served_by: served })
  return Effect.addFinalizer(() =>
    Effect.gen(function* () {
      if (usage.isWhole) return
      context.meter(id, usage.whole(yield* own))
      metrics.ended(upstream, "cancelled")
    }),
  )
}
