import { Effect, Stream } from "effect"
import { concat } from "../../core/concat.ts"
import type { ChatEvent } from "../../core/ports/model.ts"
import { documentComplete, type Heading, toLogprobs } from "./reply-encoding.ts"
import type { ChatChunk, ChatUsage, Delta, Logprobs } from "./reply-schema.ts"

type Finish = Extract<ChatEvent, { type: "finish" }>

const chunk = (
  heading: Heading,
  index: number,
  delta: Delta,
  finish: Finish | null = null,
  logprobs?: Logprobs,
): ChatChunk => ({
  id: heading.id,
  object: "chat.completion.chunk",
  created: heading.created,
  model: heading.model,
  choices: [
    {
      index,
      delta,
      ...(logprobs && { logprobs }),
      finish_reason: finish?.reason ?? null,
      ...(finish && documentComplete(finish)),
    },
  ],
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

const chunksOf = (heading: Heading, event: ChatEvent): readonly ChatChunk[] => {
  const { answer = 0 } = event
  switch (event.type) {
    case "text":
      return event.text === "" && !event.logprobs
        ? []
        : [
            chunk(
              heading,
              answer,
              { content: event.text },
              null,
              event.logprobs && toLogprobs(event.logprobs),
            ),
          ]
    case "reasoning":
      return event.text === "" ? [] : [chunk(heading, answer, { reasoning_content: event.text })]
    case "toolCall":
      return [chunk(heading, answer, callDelta(event))]
    case "finish":
      return [chunk(heading, answer, {}, event)]
  }
}

/**
 * Encodes events as the chunks of the stream. The chunk with an answer's role waits for its first
 * event: a failure before any can still be answered with an HTTP status. `usage` is called after the
 * last event only; undefined when the client wants no usage.
 */
export const toChunks = <E>(
  heading: Heading,
  events: Stream.Stream<ChatEvent, E>,
  usage: (() => ChatUsage) | undefined,
): Stream.Stream<ChatChunk, E> => {
  const chunks = events.pipe(
    Stream.mapAccum(
      () => new Set<number>(),
      (begun, event) => {
        const { answer = 0 } = event
        const own = chunksOf(heading, event)
        if (begun.has(answer)) return [begun, own] as const
        begun.add(answer)
        return [
          begun,
          [chunk(heading, answer, { role: "assistant", content: "" }), ...own],
        ] as const
      },
    ),
  )
  if (!usage) return chunks
  return concat(chunks, Stream.fromEffect(Effect.sync(() => usageChunk(heading, usage()))))
}
