import { Stream } from "effect"
import type { ChatEvent, FinishReason } from "../../core/ports/model.ts"
import { type Heading, toLogprobs } from "./reply-encoding.ts"
import type { ChatChunk, ChatUsage, Delta, Logprobs } from "./reply-schema.ts"

const chunk = (
  heading: Heading,
  delta: Delta,
  finish: FinishReason | null = null,
  logprobs?: Logprobs,
): ChatChunk => ({
  id: heading.id,
  object: "chat.completion.chunk",
  created: heading.created,
  model: heading.model,
  choices: [{ index: 0, delta, ...(logprobs && { logprobs }), finish_reason: finish }],
})

const usageChunk = (heading: Heading, usage: ChatUsage): ChatChunk => ({
  id: heading.id,
  object: "chat.completion.chunk",
  created: heading.created,
  model: heading.model,
  choices: [],
  usage,
})

type ToolCallEvent = Extract<ChatEvent, { type: "toolCall" }>

const callDelta = (event: ToolCallEvent): Delta => ({
  tool_calls: [
    {
      index: event.index,
      ...(event.id !== undefined && { id: event.id, type: "function" }),
      function: {
        ...(event.name !== undefined && { name: event.name }),
        arguments: event.argumentsDelta,
      },
    },
  ],
})

/**
 * Returns the chunks of one event. `usage` is called after the last event only; undefined when the
 * client wants no usage.
 */
const chunksOf = (
  heading: Heading,
  event: ChatEvent,
  usage: (() => ChatUsage) | undefined,
): readonly ChatChunk[] => {
  switch (event.type) {
    case "text":
      return event.text === "" && !event.logprobs
        ? []
        : [
            chunk(
              heading,
              { content: event.text },
              null,
              event.logprobs && toLogprobs(event.logprobs),
            ),
          ]
    case "reasoning":
      return event.text === "" ? [] : [chunk(heading, { reasoning_content: event.text })]
    case "toolCall":
      return [chunk(heading, callDelta(event))]
    case "finish":
      return [chunk(heading, {}, event.reason), ...(usage ? [usageChunk(heading, usage())] : [])]
  }
}

/**
 * Encodes events as the chunks of the stream. The chunk with the role waits for the model's first
 * event:
 * a failure before it can still be answered with an HTTP status.
 */
export const toChunks = <E, R>(
  heading: Heading,
  events: Stream.Stream<ChatEvent, E, R>,
  usage: (() => ChatUsage) | undefined,
): Stream.Stream<ChatChunk, E, R> =>
  events.pipe(
    Stream.mapAccum(
      () => false,
      (begun, event) => {
        const chunks = chunksOf(heading, event, usage)
        return [
          true,
          begun ? chunks : [chunk(heading, { role: "assistant", content: "" }), ...chunks],
        ] as const
      },
    ),
  )
