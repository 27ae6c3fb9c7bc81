import { Effect, Stream } from "effect"
import { concat } from "../../core/concat.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import {
  type Call,
  defineEndpoint,
  megabyte,
  type Plan,
  type Reply,
} from "../../core/ports/endpoint.ts"
import type { ChatEvent, ModelContext } from "../../core/ports/model.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Ids, ModelId } from "../../core/services/ids.ts"
import { adapterName } from "../../core/services/model-entry.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import type { Workers } from "../../core/services/workers.ts"
import { adapterOf } from "./adapter-choice.ts"
import { toChunks } from "./chunk-encoding.ts"
import { answerEvidence, mediaEvidence, requestEvidence } from "./evidence.ts"
import { makeFetchTurns } from "./fetch-turns.ts"
import {
  framesIn,
  isFetched,
  mediaIn,
  picturesIn,
  readMedia,
  refuseMedia,
  soundsIn,
  withBlockPath,
} from "./media.ts"
import { checkCapabilities, checkMaxTokens, maxTokensOf } from "./model-limits.ts"
import { refusalOf } from "./refused-fields.ts"
import { type Heading, toCompletion, usageNow } from "./reply-encoding.ts"
import { ChatChunk, ChatCompletion } from "./reply-schema.ts"
import { toRequest } from "./request-decoding.ts"
import { ChatBody } from "./request-schema.ts"
import type { ChatSettings } from "./settings.ts"
import { normalizeToolCalls, toolCallNormalizer } from "./tool-call-deltas.ts"

export interface ChatEndpointDeps {
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
  readonly outbound: Outbound
  readonly workers: Workers
  readonly settings: ChatSettings
}

type Events = Stream.Stream<ChatEvent, ApiError>

const whole = (
  call: Call<ChatBody>,
  metered: ModelId,
  heading: Heading,
  events: Events,
  makeCallId: () => string,
): Effect.Effect<Reply, ApiError> =>
  Effect.flatMap(Stream.runCollect(events), (raw) => {
    const all = raw.flatMap(toolCallNormalizer(makeCallId))
    const usage = usageNow(call, metered, heading)
    const json = toCompletion(heading, call.body.n ?? 1, all, usage)
    if (!json) return Effect.fail(apiError("backend_error", "The model stopped without an end."))
    call.context.note?.(answerEvidence(json as Json))
    return Effect.succeed({ status: 200, json })
  })

const streamed = (
  call: Call<ChatBody>,
  metered: ModelId,
  heading: Heading,
  raw: Events,
  makeCallId: () => string,
): Reply => {
  const events = normalizeToolCalls(raw, makeCallId)
  const usage =
    call.body.stream_options?.include_usage === true
      ? () => usageNow(call, metered, heading)
      : undefined
  const all: ChatEvent[] = []
  const seen = events.pipe(Stream.tap((event) => Effect.sync(() => void all.push(event))))
  const noted = Effect.sync(() => {
    const json = toCompletion(heading, call.body.n ?? 1, all, usageNow(call, metered, heading))
    if (json) call.context.note?.(answerEvidence(json as Json))
  })
  const chunks = toChunks(heading, seen, usage)
  return { status: 200, events: concat(chunks, Stream.drain(Stream.fromEffect(noted))) }
}

/** Images and frames of videos are counted beside what the model meters. */
const counting = (context: ModelContext, pictures: number): ModelContext =>
  pictures === 0
    ? context
    : {
        ...context,
        meter: (model, soFar) => context.meter(model, { ...soFar, images: pictures }),
      }

const plan = Effect.fnUntracedEager(function* (
  deps: ChatEndpointDeps,
  inTurn: ReturnType<typeof makeFetchTurns>,
  call: Call<ChatBody>,
): Effect.fn.Return<Plan, ApiError> {
  const { catalogue, clock, ids } = deps
  const { body } = call
  const entry = yield* catalogue.require("chat", body.model)
  const adapter = yield* adapterOf(body, entry)
  yield* checkMaxTokens(body, entry)
  const loaded = yield* catalogue.open("chat", entry.id)
  yield* checkCapabilities(body, entry, loaded)
  const placed = mediaIn(body)
  yield* refuseMedia(catalogue, entry, placed)
  const maxTokens = yield* maxTokensOf(body, entry, catalogue.served(entry))
  const read = () => readMedia(deps, placed)
  const media = yield* placed.some(isFetched)
    ? inTurn(call.context.tenant.account, Effect.suspend(read))
    : read()
  const pictures = picturesIn(media)
  const { bound, run } = yield* loaded.task
    .plan(toRequest(body, { maxTokens, adapter, media }), counting(call.context, pictures))
    .pipe(Effect.mapErrorEager((error) => withBlockPath(body, media, error)))
  const answerWith = (files: { readonly media?: string }) => {
    call.context.note?.(Object.assign(requestEvidence(body, entry), files))
    const heading: Heading = {
      id: ids.make("chatcmpl-"),
      created: Math.floor(clock.nowMs() / 1000),
      model: adapter ? adapterName(entry.id, adapter) : entry.id,
      videoFrames: framesIn(media),
      isOfSounds: soundsIn(media) > 0 && picturesIn(media) === 0,
    }
    const makeCallId = () => ids.make("call_")
    return body.stream === true
      ? Effect.succeed(streamed(call, entry.id, heading, run, makeCallId))
      : whole(call, entry.id, heading, run, makeCallId)
  }
  return {
    bound: { [entry.id]: { ...bound, images: pictures } },
    run: Effect.suspend(() => Effect.flatMapEager(mediaEvidence(media), answerWith)),
  }
})

/** More than the longest context window holds. */
const maxTextBytes = 8 * megabyte

const readsMedia = ({ entries }: Catalogue): boolean =>
  entries.some(({ task, modalities }) => task === "chat" && modalities.some((m) => m !== "text"))

export const makeChatEndpoint = (deps: ChatEndpointDeps) => {
  const inTurn = makeFetchTurns()
  return defineEndpoint<ChatBody>({
    id: "chat.completions",
    summary: "Answers a conversation, whole or as a stream of chunks.",
    method: "POST",
    path: "/v1/chat/completions",
    access: "key",
    body: ChatBody,
    refuses: refusalOf,
    maxBodyBytes: readsMedia(deps.catalogue) ? 50 * megabyte : maxTextBytes,
    maxTextBytes,
    reply: ChatCompletion,
    event: ChatChunk,
    creates: true,
    batchable: true,
    plan: (call) => plan(deps, inTurn, call),
  })
}
