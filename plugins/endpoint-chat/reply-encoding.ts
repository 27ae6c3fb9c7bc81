import { rupiahNumber } from "../../core/money.ts"
import type { Call } from "../../core/ports/endpoint.ts"
import type { ChatEvent, TokenLogprob } from "../../core/ports/model.ts"
import { noUsage } from "../../core/usage.ts"
import type { AnsweredCall, ChatCompletion, ChatUsage, Logprobs } from "./reply-schema.ts"

/** The fields that a completion, or all chunks of one answer, share. */
export interface Heading {
  readonly id: string
  /** In Unix seconds. */
  readonly created: number
  readonly model: string
  /** Frames of videos in the prompt. */
  readonly videoFrames?: number
  /** The tokens that are no text are those of sounds, as there are no pictures. */
  readonly isOfSounds?: boolean
}

/** Returns what the call has used so far, and its cost. */
export const usageNow = (
  call: Pick<Call<unknown>, "used" | "cost">,
  model: string,
  { videoFrames = 0, isOfSounds = false }: Pick<Heading, "videoFrames" | "isOfSounds"> = {},
): ChatUsage => {
  const used = call.used()
  const usage = used[model] ?? noUsage
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      ...(usage.imageTokens > 0 && {
        [isOfSounds ? "audio_tokens" : "image_tokens"]: usage.imageTokens,
      }),
      ...(videoFrames > 0 && { video_frames: videoFrames }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    cost_idr: rupiahNumber(call.cost()),
  }
}

type TextLogprobs = NonNullable<Extract<ChatEvent, { type: "text" }>["logprobs"]>

const plain = ({ token, logprob, bytes }: TokenLogprob) => ({ token, logprob, bytes: [...bytes] })

export const toLogprobs = (tokens: TextLogprobs): Logprobs => ({
  content: tokens.map((token) => ({ ...plain(token), top_logprobs: token.top.map(plain) })),
})

const only = <T extends ChatEvent["type"]>(events: readonly ChatEvent[], type: T) =>
  events.filter((event): event is Extract<ChatEvent, { type: T }> => event.type === type)

const toCalls = (events: readonly ChatEvent[]): readonly AnsweredCall[] => {
  const calls = new Map<number, AnsweredCall>()
  for (const event of only(events, "toolCall")) {
    const before = calls.get(event.index)
    const name = event.name ?? before?.function.name ?? ""
    calls.set(event.index, {
      id: event.id ?? before?.id ?? "",
      type: "function",
      function: { name, arguments: (before?.function.arguments ?? "") + event.argumentsDelta },
    })
  }
  return [...calls].sort(([a], [b]) => a - b).map(([, call]) => call)
}

export const documentComplete = ({ isWhole }: Extract<ChatEvent, { type: "finish" }>) =>
  isWhole === undefined ? {} : { document_complete: isWhole }

type Choice = ChatCompletion["choices"][number]

/** `content` is null only when there are tool calls and no text. */
const toChoice = (index: number, events: readonly ChatEvent[]): Choice | undefined => {
  const finish = only(events, "finish").at(-1)
  if (!finish) return undefined
  const texts = only(events, "text")
  const text = texts.map((event) => event.text).join("")
  const reasoning = only(events, "reasoning")
    .map((event) => event.text)
    .join("")
  const calls = toCalls(events)
  const logprobs = texts.flatMap((event) =>
    event.logprobs ? toLogprobs(event.logprobs).content : [],
  )
  return {
    index,
    message: {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
    finish_reason: finish.reason,
    ...documentComplete(finish),
  }
}

/** Encodes all events of the answers as one completion; undefined where an answer has no end. */
export const toCompletion = (
  heading: Heading,
  answers: number,
  events: readonly ChatEvent[],
  usage: ChatUsage,
): ChatCompletion | undefined => {
  const choices: Choice[] = []
  for (let index = 0; index < answers; index++) {
    const own = answers === 1 ? events : events.filter(({ answer = 0 }) => answer === index)
    const choice = toChoice(index, own)
    if (!choice) return undefined
    choices.push(choice)
  }
  return {
    id: heading.id,
    object: "chat.completion",
    created: heading.created,
    model: heading.model,
    choices,
    usage,
  }
}
