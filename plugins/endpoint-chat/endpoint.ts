import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import {
  type Call,
  defineEndpoint,
  megabyte,
  type Plan,
  type Reply,
} from "../../core/ports/endpoint.ts"
import type { ChatEvent } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Ids } from "../../core/services/ids.ts"
import { toChunks } from "./chunk-encoding.ts"
import { maxTokensOf } from "./max-tokens.ts"
import { finishOf, type Heading, toCompletion } from "./reply-encoding.ts"
import { ChatChunk, ChatCompletion } from "./reply-schema.ts"
import { toRequest } from "./request-decoding.ts"
import { ChatBody } from "./request-schema.ts"
import { tidyCalls } from "./tool-call-deltas.ts"
import { refuseUnsupported } from "./unsupported.ts"
import { usageNow } from "./usage.ts"

export interface ChatEndpointParts {
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
}

type Events = Stream.Stream<ChatEvent, ApiError>

const whole = (
  call: Call<ChatBody>,
  heading: Heading,
  events: Events,
): Effect.Effect<Reply, ApiError> =>
  Effect.gen(function* () {
    const all = yield* Stream.runCollect(events)
    const finish = finishOf(all)
    if (finish === undefined)
      return yield* apiError("backend_error", "The model stopped without an end.")
    return { status: 200, json: toCompletion(heading, all, finish, usageNow(call, heading.model)) }
  })

const streamed = (call: Call<ChatBody>, heading: Heading, events: Events): Reply => {
  const usage =
    call.body.stream_options?.include_usage === true
      ? () => usageNow(call, heading.model)
      : undefined
  return { status: 200, events: toChunks(heading, events, usage) }
}

const plan = (
  { catalogue, clock, ids }: ChatEndpointParts,
  call: Call<ChatBody>,
): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const { body } = call
    const entry = yield* catalogue.require("chat", body.model)
    const maxTokens = yield* maxTokensOf(body, entry)
    yield* refuseUnsupported(body)
    const { task } = yield* catalogue.open("chat", entry.id)
    const { bound, run } = yield* task.plan(toRequest(body, maxTokens), call.context)
    const answer = Effect.suspend(() => {
      const heading: Heading = {
        id: ids.make("chatcmpl-"),
        created: Math.floor(clock.nowMs() / 1000),
        model: entry.id,
      }
      const events = tidyCalls(run, () => ids.make("call_"))
      return body.stream === true
        ? Effect.succeed(streamed(call, heading, events))
        : whole(call, heading, events)
    })
    return { bound: { [entry.id]: bound }, run: answer }
  })

export const makeChatEndpoint = (parts: ChatEndpointParts) =>
  defineEndpoint<ChatBody>({
    id: "chat.completions",
    summary: "Answers a conversation, whole or as a stream of chunks.",
    method: "POST",
    path: "/v1/chat/completions",
    access: "key",
    body: ChatBody,
    maxBodyBytes: 50 * megabyte,
    reply: ChatCompletion,
    event: ChatChunk,
    creates: true,
    batchable: true,
    plan: (call) => plan(parts, call),
  })
