import { Effect } from "effect"
import type { ChatEvent } from "../../../core/ports/model.ts"
import type { UpstreamReply } from "../upstream/connection.ts"
import { EventStreamParser } from "../upstream/event-stream.ts"
import { connectionFailure, failure, type UpstreamFailure } from "../upstream/failure.ts"
import type { ChatAnswer } from "./chat-answer.ts"

/** The largest event; one holds a token with its alternatives, or a whole call of a tool. */
const maxEventBytes = 8 * 2 ** 20
/** How long usage may take after the last finish. */
const usageWaitMs = 2_000

const isEventStream = (contentType: string): boolean =>
  contentType.split(";")[0]?.trim().toLowerCase() === "text/event-stream"

/**
 * Reads the body of a chat stream. `next` returns the events of the next piece of it that has any;
 * undefined at its end, which is `[DONE]`, the end of the body, or a pause after all finishes.
 */
export const makeChatReader = (
  { contentType, body }: UpstreamReply,
  answer: ChatAnswer,
): Effect.Effect<
  { next(timeoutMs: number): Effect.Effect<readonly ChatEvent[] | undefined, UpstreamFailure> },
  UpstreamFailure
> => {
  const pieces = body[Symbol.asyncIterator]()
  const parser = new EventStreamParser(maxEventBytes)
  let waiting: readonly string[] = []
  let hasEnded = false
  let begun = false
  const fill = async (): Promise<void> => {
    const piece = await pieces.next()
    hasEnded = piece.done === true
    waiting = piece.done === true ? parser.end() : parser.push(piece.value)
  }
  const take = (): readonly ChatEvent[] => {
    const events: ChatEvent[] = []
    for (const data of waiting) {
      if (data.trim() === "[DONE]") hasEnded = true
      if (hasEnded && data.trim() === "[DONE]") break
      events.push(...answer.read(data))
    }
    waiting = []
    if (answer.isOverlong) hasEnded = true
    return events
  }
  const read = async (): Promise<readonly ChatEvent[] | undefined> => {
    while (!hasEnded) {
      await fill()
      const events = take()
      begun ||= events.length > 0
      if (events.length > 0 || (answer.isFinished() && !hasEnded)) return events
    }
    return undefined
  }
  const next = (timeoutMs: number) =>
    Effect.suspend(() => {
      const isFinished = answer.isFinished()
      return Effect.tryPromise({
        try: read,
        catch: (cause) => connectionFailure(cause, begun),
      }).pipe(
        Effect.timeoutOrElse({
          duration: Math.max(0, isFinished ? Math.min(timeoutMs, usageWaitMs) : timeoutMs),
          orElse: () =>
            isFinished
              ? Effect.succeed(undefined)
              : Effect.fail(failure("slow", `no event within ${timeoutMs} ms`)),
        }),
      )
    })
  return isEventStream(contentType)
    ? Effect.succeed({ next })
    : Effect.fail(failure("garbled", `it sent ${contentType || "no type"}, not an event stream`))
}
