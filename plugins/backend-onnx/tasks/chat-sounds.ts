import { hash } from "node:crypto"
import { Effect, Stream } from "effect"
import { apiError } from "../../../core/errors.ts"
import type { ChatRequest, ModelContext } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { timed } from "../chat-format/pool.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import { soundTokens } from "../hearing/listening-config.ts"
import type { ListeningInfo, ListenJobRequest } from "../hearing/open-listening-engine.ts"
import type { Engine } from "../worker/host.ts"
import { type ChatMedia, idsOf, type Media, markOf, mediaIn, type ReadMedia } from "./chat-media.ts"
import { decodedSound, wrongSound } from "./decoded-sound.ts"
import { type EncodedImage, encodedImages } from "./encoded-images.ts"
import { keptOrMade } from "./recently-used.ts"

export interface ChatSoundsDeps {
  readonly engine: Engine<ListenJobRequest, EmbedJobEvent, ListeningInfo>
  /** The memory for encoded sounds. */
  readonly cacheBytes: number
  readonly contextTokens: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

interface ReadSound {
  /** The account and the digest: what is kept is not shared. */
  readonly key: string
  readonly digest: Buffer
  readonly samples: Float32Array
  readonly tokens: number
}

/** Returns what decodes a sound of a request. */
const makeReader = (deps: ChatSoundsDeps) => (part: Media, param: string, context: ModelContext) =>
  Effect.gen(function* () {
    const { rate, hop, seconds } = deps.engine.info
    const samples = yield* decodedSound(deps, part, param, { rate, maxSeconds: seconds })
    const tokens = soundTokens(samples.length, hop)
    if (tokens < 1) return yield* wrongSound(param, "is too short to be heard")
    const digest = hash("sha256", part.bytes, "buffer")
    const { account, mode } = context.tenant
    const key = JSON.stringify([account, mode, digest.toString("base64")])
    return { key, digest, samples, tokens } satisfies ReadSound
  })

/** Returns what encodes a sound, once for all requests that wait for it, and keeps it. */
const makeEncoder = ({ engine, clock, cacheBytes }: ChatSoundsDeps) => {
  const keptOr = keptOrMade<EncodedImage>(encodedImages(cacheBytes))
  const encode = ({ samples, tokens }: ReadSound, context: ModelContext) =>
    engine
      .run<Float32Array>(
        { samples },
        {
          account: context.tenant.account,
          priority: context.priority,
          waitMs: Number.POSITIVE_INFINITY,
          timeoutMs: () => context.deadlineMs - clock.nowMs(),
          translate: (event) => {
            if (event.type === "vector") return [event.vector]
            if (event.stage === "prefill") context.time("audio", event.durationMs)
            return undefined
          },
        },
      )
      .pipe(
        Stream.runCollect,
        Effect.map(([embedded]) => ({ rows: tokens, columns: 1, embedded: embedded! })),
      )
  return (sound: ReadSound, context: ModelContext) =>
    Effect.map(keptOr(sound.key, encode(sound, context)), ({ embedded }) => embedded)
}

/** Reads the sounds of chat requests, and encodes them: each of them once while it is kept. */
export const makeChatSounds = (deps: ChatSoundsDeps): ChatMedia => {
  const { engine, contextTokens, clock } = deps
  const readOne = makeReader(deps)
  const encoded = makeEncoder(deps)
  const read = Effect.fnUntraced(function* (request: ChatRequest, context: ModelContext) {
    const sounds: ReadSound[] = []
    let tokens = 0
    for (const { part, param } of mediaIn(request, "input_audio.data")) {
      const one = yield* timed(clock, context, "audio", readOne(part, param, context))
      sounds.push(one)
      tokens += one.tokens
      if (tokens >= contextTokens)
        return yield* apiError(
          "context_length_exceeded",
          `The sounds have at least ${tokens} tokens, but the model's window is ${contextTokens} tokens.`,
          { param },
        )
    }
    const mark = markOf(request)
    if (typeof mark !== "string") return yield* mark
    const { rate, audioToken, digest } = engine.info
    const parts = sounds.map((one) => [idsOf(one.digest, one.tokens)])
    const all: ReadMedia = {
      prompt: { kind: "audio", mark, token: audioToken, parts },
      tokens,
      seconds: sounds.reduce((sum, { samples }) => sum + Math.ceil(samples.length / rate), 0),
      digest,
      encoded: Effect.forEach(sounds, (sound) => encoded(sound, context)),
    }
    return all
  })
  return { read }
}
