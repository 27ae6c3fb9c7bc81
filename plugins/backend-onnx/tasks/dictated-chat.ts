import { hash } from "node:crypto"
import { Effect, Stream } from "effect"
import type {
  ChatEvent,
  ChatMessage,
  ChatRequest,
  ModelContext,
  ModelPlan,
  Part,
  Task,
} from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { Usage } from "../../../core/usage.ts"
import { timed } from "../chat-format/pool.ts"
import type {
  HearingInfo,
  TranscribeJobEvent,
  TranscribeJobRequest,
} from "../hearing/transcribe-job.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { type Media, mediaIn } from "./chat-media.ts"
import { decodedSound, wrongSound } from "./decoded-sound.ts"
import { keptOrMade, RecentlyUsed } from "./recently-used.ts"

export interface DictationDeps {
  /** The speech model. */
  readonly engine: Engine<TranscribeJobRequest, TranscribeJobEvent, HearingInfo>
  /** How long a sound may wait for a slot of it. */
  readonly queueWaitMs: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

/** The longest sound. */
const maxSeconds = 60
/** Memory of what sounds say, of an entry. */
const cacheBytes = 2 ** 20
/** More than anybody says in a second, in bytes; a token has at least one. */
const bytesOfSecond = 64
/** Tokens around what is said, which it may divide. */
const slackTokens = 32

interface ReadSound {
  readonly part: Part
  /** The account and the digest: what is kept is not shared. */
  readonly key: string
  readonly samples: Float32Array
  readonly seconds: number
}

export const isSound = (part: Part): part is Media =>
  part.type === "media" && part.mediaType.startsWith("audio/")

/** The request with a text in the place of each sound. */
const withTexts = (request: ChatRequest, texts: ReadonlyMap<Part, string>): ChatRequest => ({
  ...request,
  messages: request.messages.map((message: ChatMessage) => ({
    ...message,
    content: message.content.map((part): Part => {
      const text = texts.get(part)
      if (text === undefined) return part
      return { type: "text", text, ...(part.cacheBreakpoint && { cacheBreakpoint: true }) }
    }),
  })),
})

/** The beginning of a text that has at most so many bytes in UTF-8. */
const within = (text: string, bytes: number): string => {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes))
  return text.slice(0, read)
}

/** Returns what writes down a sound, once for all requests that wait for it, and keeps it. */
const makeWriter = ({ engine, clock }: DictationDeps) => {
  const keptOr = keptOrMade(new RecentlyUsed<string>(cacheBytes, (text) => 2 * text.length + 256))
  type Heard = Exclude<TranscribeJobEvent, StageTime>
  const write = ({ samples, seconds }: ReadSound, context: ModelContext) =>
    engine
      .run<Heard>(
        { samples, temperature: 0, seed: 0, segments: false },
        {
          account: context.tenant.account,
          priority: context.priority,
          waitMs: Number.POSITIVE_INFINITY,
          timeoutMs: () => context.deadlineMs - clock.nowMs(),
          translate: (event) => (event.type === "time" ? undefined : [event]),
        },
      )
      .pipe(
        Stream.runFold(
          () => "",
          (said, event) => said + (event.type === "text" ? event.text : ""),
        ),
        Effect.map((said) => within(said.trim(), seconds * bytesOfSecond)),
      )
  return (sound: ReadSound, context: ModelContext) =>
    keptOr(sound.key, write(sound, context), (flight) => timed(clock, context, "audio", flight))
}

/** Reports the seconds of sounds with all that the chat model reports. */
const hearing = (context: ModelContext, audioSeconds: number, digest: string): ModelContext => ({
  ...context,
  time: (stage, durationMs) => context.time(stage, durationMs),
  meter: (model, soFar) => context.meter(model, { ...soFar, audioSeconds }),
  note: ({ model, ...facts }) =>
    context.note?.({
      ...facts,
      ...(model !== undefined && { model: model === null ? null : `${model}+${digest}` }),
    }),
})

/**
 * A chat task that takes sounds: a speech model writes down what is said, which the chat model reads
 * as text in the place of the sound. What is said is not known before it runs, so the plan holds for
 * the longest text that a sound of that length may have.
 */
export const dictatedChat = (
  inner: Task<ChatRequest, ChatEvent>,
  deps: DictationDeps,
): Task<ChatRequest, ChatEvent> => {
  const { engine, queueWaitMs, clock } = deps
  const { rate, digest } = engine.info
  const written = makeWriter(deps)

  const read = Effect.fnUntraced(function* (part: Media, param: string, context: ModelContext) {
    const samples = yield* decodedSound(deps, part, param, { rate, maxSeconds })
    if (samples.length === 0) return yield* wrongSound(param, "is too short to be heard")
    const { account, mode } = context.tenant
    const key = JSON.stringify([account, mode, hash("sha256", part.bytes, "base64")])
    return { part, key, samples, seconds: Math.ceil(samples.length / rate) } satisfies ReadSound
  })

  const bound = (known: Usage, request: ChatRequest, sounds: readonly ReadSound[]): Usage => {
    const audioSeconds = sounds.reduce((sum, { seconds }) => sum + seconds, 0)
    const inputTokens =
      known.inputTokens + audioSeconds * bytesOfSecond + sounds.length * slackTokens
    const caches = request.messages.some(({ content }) => content.some((p) => p.cacheBreakpoint))
    const cached = caches ? { cacheReadTokens: inputTokens, cacheWriteTokens: inputTokens } : {}
    return { ...known, ...cached, inputTokens, audioSeconds }
  }

  const plan = Effect.fnUntraced(function* (request: ChatRequest, context: ModelContext) {
    const placed = mediaIn(request, "input_audio.data").filter(({ part }) => isSound(part))
    if (placed.length === 0) return yield* inner.plan(request, context)
    yield* engine.availableFor({ priority: context.priority, waitMs: queueWaitMs })
    const sounds = yield* Effect.forEach(placed, ({ part, param }) =>
      timed(clock, context, "audio", read(part, param, context)),
    )
    const silent = withTexts(request, new Map(sounds.map(({ part }) => [part, ""])))
    const most = bound((yield* inner.plan(silent, context)).bound, request, sounds)
    const heard = hearing(context, most.audioSeconds, digest)
    const run = Effect.gen(function* () {
      const texts = yield* Effect.forEach(sounds, (sound) =>
        Effect.map(written(sound, context), (text) => [sound.part, text] as const),
      )
      return (yield* inner.plan(withTexts(request, new Map(texts)), heard)).run
    })
    return { bound: most, run: Stream.unwrap(run) } satisfies ModelPlan<ChatEvent>
  })
  return { plan }
}
