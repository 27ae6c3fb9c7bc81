import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type {
  ChatEvent,
  ChatRequest,
  ModelContext,
  ModelPlan,
  Task,
} from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import type { Prompt } from "../chat-format/chat-prompt.ts"
import type { ChatPromptInput } from "../chat-format/chat-prompt-job.ts"
import { isFarTooLong, isLong, oneAtATime } from "../chat-format/long-texts.ts"
import { inPool, timedTokenize } from "../chat-format/pool.ts"
import { thinkClose } from "../chat-format/template-style.ts"
import type {
  DecoderEvent,
  DecoderInfo,
  DecoderRequest,
  GenerateRequest,
} from "../generation/decoder-jobs.ts"
import { answerEvents } from "../output/answer-events.ts"
import { freshSeed, furtherSeeds } from "../sampling/random.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { type AnswerPlan, planAnswer } from "./answer-plan.ts"
import { type ChatMedia, hasMedia, type ReadMedia } from "./chat-media.ts"
import { promptRequest, unsupportedIn } from "./chat-request.ts"
import { cpu, digestFor } from "./evidence.ts"

type Tokenized = Extract<Prompt, { readonly ids: unknown }>

export interface ChatTaskDeps {
  readonly id: ModelId
  readonly engine: Engine<DecoderRequest, DecoderEvent, DecoderInfo>
  readonly contextTokens: number
  /** Ids of the adapters that requests may choose. */
  readonly adapters: readonly string[]
  /** The adapter of every request with media: a part of the model. Texts are the decoder's own. */
  readonly ownAdapter?: ChatRequest["adapter"]
  /**
   * Whether the prompt tells the model the schema of its answer; undefined: where the chat template
   * has a place for it.
   */
  readonly schemaInPrompt: boolean | undefined
  /** By which the model sees or hears; undefined: it does not. */
  readonly media?: ChatMedia | undefined
  /** How long a request may wait for a slot. */
  readonly queueWaitMs: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

// breakpoints of shorter prefixes are ignored
const leastPrefixTokens = 101
// each breakpoint costs a walk through the prefix cache
const mostBreakpoints = 16

/** Key of a prefix cache: neither accounts nor modes nor models nor adapters share one. */
const ownerOf = (id: ModelId, { tenant }: ModelContext, adapter: ChatRequest["adapter"]): string =>
  JSON.stringify([tenant.account, tenant.mode, id, adapter && [adapter.id, adapter.strength]])

/** The day in the server's time zone, as templates write it. */
const dayOf = (nowMs: number): string => {
  const date = new Date(nowMs)
  const two = (number: number) => String(number).padStart(2, "0")
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

const computedFrom = (
  info: DecoderInfo,
  { seed, maxTokens, adapter }: GenerateRequest,
  media: ReadMedia | undefined,
  clock: Clock,
) => ({
  seed,
  max_tokens: maxTokens,
  model: digestFor(info, adapter, media?.digest),
  cpu: cpu(),
  ...(info.isDated && { date: dayOf(clock.nowMs()) }),
})

const breakpointsOf = (cacheBreakpoints: readonly number[]): readonly number[] =>
  [...new Set(cacheBreakpoints)]
    .filter((tokens) => tokens >= leastPrefixTokens)
    .slice(-mostBreakpoints)

const generation = (
  request: ChatRequest,
  owner: string,
  { ids: promptIds, cacheBreakpoints }: Tokenized,
  { grammar, markers, form }: AnswerPlan,
  maxTokens: number,
): GenerateRequest => {
  const { seed: given, logitBias, ...sampling } = request.sampling
  const { answers = 1 } = request
  const seed = given ?? freshSeed()
  return {
    kind: "generate",
    owner,
    promptIds,
    ...(request.adapter && { adapter: request.adapter }),
    cacheBreakpoints,
    maxTokens,
    stop: request.stop,
    ...(form.reasoning === "begun" && { stopAfter: thinkClose }),
    seed,
    // the first answer is the one that is written alone
    ...(answers > 1 && { furtherSeeds: furtherSeeds(seed, answers - 1) }),
    ...(request.topLogprobs !== undefined && { topLogprobs: request.topLogprobs }),
    ...(grammar && { grammar }),
    markers,
    sampler: { ...sampling, logitBias: [...(logitBias ?? [])] },
  }
}

const wrongBias = (request: ChatRequest, vocabulary: number): ApiError | undefined => {
  const wrong = [...(request.sampling.logitBias?.keys() ?? [])].find(
    (id) => !Number.isInteger(id) || id < 0 || id >= vocabulary,
  )
  return wrong === undefined
    ? undefined
    : apiError(
        "invalid_request_error",
        `The token id ${wrong} is not in this model's vocabulary of ${vocabulary}.`,
        { param: "logit_bias" },
      )
}

const numbered = (events: readonly ChatEvent[], answer?: number): readonly ChatEvent[] =>
  answer ? events.map((event) => ({ ...event, answer })) : events

/**
 * Translates engine events to chat events; meters tokens when they are produced, whether the client
 * reads them or not.
 */
const translator = (
  id: ModelId,
  context: ModelContext,
  { form }: AnswerPlan,
  {
    answers,
    promptIds,
    audioSeconds = 0,
  }: {
    readonly answers: number
    readonly promptIds: Int32Array
    readonly audioSeconds?: number | undefined
  },
) => {
  const written = Array.from({ length: answers }, () => ({ events: answerEvents(form), tokens: 0 }))
  let read = {}
  const used = () => ({
    ...read,
    outputTokens: written.reduce((sum, { tokens }) => sum + tokens, 0),
    reasoningTokens: written.reduce((sum, { events }) => sum + events.reasoningTokens, 0),
  })
  return (event: DecoderEvent | StageTime): readonly ChatEvent[] | undefined => {
    switch (event.type) {
      case "time":
        context.time(event.stage, event.durationMs)
        return undefined
      case "prefilled": {
        const { inputTokens, cacheReadTokens, cacheWriteTokens } = event
        const imageTokens = promptIds.subarray(0, inputTokens).filter((of) => of < 0).length
        read = { inputTokens, imageTokens, cacheReadTokens, cacheWriteTokens, audioSeconds }
        context.meter(id, usageOf(read))
        return undefined
      }
      case "token": {
        const one = written[event.answer ?? 0]!
        const events = one.events.token(event)
        one.tokens = event.outputTokens
        context.meter(id, usageOf(used()))
        return numbered(events, event.answer)
      }
      case "finish":
        return numbered(written[event.answer ?? 0]!.events.finish(event), event.answer)
      default:
        return undefined
    }
  }
}

/** Returns what renders and tokenizes a request's prompt, in the pool. */
const makePrompter =
  ({ engine, contextTokens, schemaInPrompt, workers, log }: ChatTaskDeps) =>
  (request: ChatRequest, media?: ReadMedia): Effect.Effect<Prompt, ApiError> =>
    Effect.suspend(() => {
      const { folder } = engine.info
      const asked = promptRequest(request, {
        // a schema takes a quarter of the window at most, at four bytes a token
        mostSchemaBytes: schemaInPrompt === false ? 0 : contextTokens,
        isSchemaAnnounced: schemaInPrompt === true,
        images: media?.prompt,
      })
      const input: ChatPromptInput = { folder, ...asked, contextTokens }
      const whole = inPool<ChatPromptInput, Prompt>(workers, log, "chat-prompt-job", input)
      if (!isLong(input)) return whole
      return Effect.flatMap(
        isFarTooLong(workers, log, folder, input, contextTokens),
        (isTooLong) =>
          isTooLong ? Effect.succeed({ tooLong: contextTokens + 1 }) : oneAtATime(whole),
      )
    })

/** Why a prompt is not run. */
const refusedPrompt = (prompt: Prompt, { maxTokens }: ChatRequest, contextTokens: number) => {
  if ("refused" in prompt)
    return apiError(
      "invalid_request_error",
      `The model's chat template can't take these messages: ${prompt.refused}`,
      { param: "messages" },
    )
  const tokens = "ids" in prompt ? prompt.ids.length : `at least ${prompt.tooLong}`
  return apiError(
    "context_length_exceeded",
    `The messages have ${tokens} tokens and max_tokens is ${maxTokens}, but the model's window is ${contextTokens} tokens. Shorten the messages.`,
    { param: "messages" },
  )
}

/** The chat task of a decoder engine. */
export const makeChatTask = (deps: ChatTaskDeps): Task<ChatRequest, ChatEvent> => {
  const {
    id,
    engine,
    contextTokens,
    adapters,
    ownAdapter,
    media: senses,
    queueWaitMs,
    clock,
  } = deps
  const tokenized = makePrompter(deps)
  const plan = Effect.fnUntraced(function* (asked: ChatRequest, context: ModelContext) {
    const refusal =
      unsupportedIn(asked, adapters, senses !== undefined) ??
      wrongBias(asked, engine.info.vocabulary)
    if (refusal) return yield* refusal
    const request = ownAdapter && hasMedia(asked) ? { ...asked, adapter: ownAdapter } : asked
    const wait = { priority: context.priority, waitMs: queueWaitMs }
    yield* engine.availableFor(wait)
    const media = senses && hasMedia(request) ? yield* senses.read(request, context) : undefined
    const prompt = yield* timedTokenize(clock, context, tokenized(request, media))
    if (!("ids" in prompt) || prompt.ids.length >= contextTokens)
      return yield* refusedPrompt(prompt, request, contextTokens)
    const inputTokens = prompt.ids.length
    const answer = yield* planAnswer(deps, request, prompt.form)
    const maxTokens = Math.min(request.maxTokens, contextTokens - inputTokens)
    const { answers = 1 } = request
    const cacheBreakpoints = breakpointsOf(prompt.cacheBreakpoints)
    const job = generation(
      request,
      ownerOf(id, context, request.adapter),
      { ...prompt, cacheBreakpoints },
      answer,
      maxTokens,
    )
    context.note?.(computedFrom(engine.info, job, media, clock))
    const runWith = (embedded?: readonly Float32Array[]) =>
      engine.run(
        embedded ? { ...job, embedded, ...(media?.grids && { grids: media.grids }) } : job,
        {
          ...wait,
          account: context.tenant.account,
          timeoutMs: () => context.deadlineMs - clock.nowMs(),
          translate: translator(id, context, answer, {
            answers,
            promptIds: prompt.ids,
            audioSeconds: media?.seconds,
          }),
        },
      )
    const run = media ? Stream.unwrap(Effect.map(media.encoded, runWith)) : runWith()
    const planned: ModelPlan<ChatEvent> = {
      bound: usageOf({
        inputTokens,
        imageTokens: media?.tokens ?? 0,
        audioSeconds: media?.seconds ?? 0,
        cacheReadTokens: cacheBreakpoints.at(-1) ?? 0,
        cacheWriteTokens: cacheBreakpoints.at(-1) ?? 0,
        outputTokens: answers * maxTokens,
        reasoningTokens: answer.form.reasoning === "none" ? 0 : answers * maxTokens,
      }),
      run,
    }
    return planned
  })
  return { plan }
}
