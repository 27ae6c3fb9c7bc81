import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ModelId } from "../../../core/ids.ts"
import type { ChatEvent, ChatRequest, ModelContext, ModelPlan, Task } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import type { Engine } from "../engine/engine-host.ts"
import type { GenerateRequest, LlamaEvent, LlamaInfo, LlamaRequest } from "../engine/llama-jobs.ts"
import type { StageTime } from "../engine/protocol.ts"
import { freshSeed } from "../engine/random.ts"
import type { Prompt } from "../tokenizer/chat-prompt.ts"
import type { ChatPromptInput } from "../tokenizer/chat-prompt-job.ts"
import { inPool, timedTokenize } from "../tokenizer/pool.ts"
import { promptMessages, unsupportedIn } from "./chat-request.ts"

export interface ChatModelParts {
  readonly id: ModelId
  readonly engine: Engine<LlamaRequest, LlamaEvent, LlamaInfo>
  readonly contextTokens: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

const generation = (request: ChatRequest, promptIds: Int32Array, maxTokens: number): GenerateRequest => {
  const { temperature, topP, frequencyPenalty, presencePenalty, seed, logitBias } = request.sampling
  return {
    kind: "generate",
    promptIds,
    maxTokens,
    stop: request.stop,
    seed: seed ?? freshSeed(),
    sampler: { temperature, topP, frequencyPenalty, presencePenalty, logitBias: [...(logitBias ?? [])] },
  }
}

const wrongBias = (request: ChatRequest, vocabulary: number): ApiError | undefined => {
  const wrong = [...(request.sampling.logitBias?.keys() ?? [])].find((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary)
  return wrong === undefined ? undefined : apiError("invalid_request_error", `The token id ${wrong} is not in this model's vocabulary of ${vocabulary}.`, { param: "logit_bias" })
}

/** Engine events to chat events; meters tokens when they are produced, read or not. */
const translator = (id: ModelId, context: ModelContext) => {
  let inputTokens = 0
  return (event: LlamaEvent | StageTime): readonly ChatEvent[] | undefined => {
    const text = (text: string): readonly ChatEvent[] => (text ? [{ type: "text", text }] : [])
    switch (event.type) {
      case "time":
        context.time(event.stage, event.durationMs)
        return undefined
      case "prefilled":
        inputTokens = event.inputTokens
        context.meter(id, usageOf({ inputTokens }))
        return undefined
      case "token":
        context.meter(id, usageOf({ inputTokens, outputTokens: event.outputTokens }))
        return event.text ? text(event.text) : undefined
      case "finish":
        return [...text(event.text), { type: "finish", reason: event.reason }]
      default:
        return undefined
    }
  }
}

/** The chat task of an engine. */
export const makeChatModel = (parts: ChatModelParts): Task<ChatRequest, ChatEvent> => {
  const { id, engine, contextTokens, workers, clock, log } = parts
  const tooLong = (tokens: string, maxTokens: number) =>
    apiError(
      "context_length_exceeded",
      `The messages have ${tokens} tokens and max_tokens is ${maxTokens}, but the model's window is ${contextTokens} tokens. Shorten the messages.`,
      {
        param: "messages",
      },
    )
  const plan = Effect.fnUntraced(function* (request: ChatRequest, context: ModelContext) {
    const refusal = unsupportedIn(request) ?? wrongBias(request, engine.info.vocabulary)
    if (refusal) return yield* refusal
    yield* engine.available
    const input: ChatPromptInput = { folder: engine.info.folder, messages: promptMessages(request.messages), contextTokens }
    const prompt = yield* timedTokenize(clock, context, inPool<ChatPromptInput, Prompt>(workers, log, "chat-prompt-job", input))
    if ("tooLong" in prompt) return yield* tooLong(`at least ${prompt.tooLong}`, request.maxTokens)
    if ("refused" in prompt) return yield* apiError("invalid_request_error", `The model's chat template can't take these messages: ${prompt.refused}`, { param: "messages" })
    const inputTokens = prompt.ids.length
    if (inputTokens >= contextTokens) return yield* tooLong(String(inputTokens), request.maxTokens)
    const maxTokens = Math.min(request.maxTokens, contextTokens - inputTokens)
    const run = engine.run(generation(request, prompt.ids, maxTokens), {
      priority: context.priority,
      timeoutMs: () => context.deadlineMs - clock.nowMs(),
      translate: translator(id, context),
    })
    const planned: ModelPlan<ChatEvent> = { bound: usageOf({ inputTokens, outputTokens: maxTokens }), run }
    return planned
  })
  return { plan }
}
