import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { TranscribeEvent, TranscribeRequest } from "../../../core/ports/audio.ts"
import type { ModelContext, ModelPlan, Task } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import type { DecodeAudioInput, DecodedAudio } from "../audio/decode-audio-job.ts"
import { inPool, timed } from "../chat-format/pool.ts"
import type {
  HearingInfo,
  TranscribeJobEvent,
  TranscribeJobRequest,
} from "../hearing/transcribe-job.ts"
import { freshSeed } from "../sampling/random.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { cpu, digestFor } from "./evidence.ts"

export interface TranscribeTaskDeps {
  readonly id: ModelId
  readonly engine: Engine<TranscribeJobRequest, TranscribeJobEvent, HearingInfo>
  /** How long a request waits for a slot. */
  readonly queueWaitMs: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

type HeardEvent = Exclude<TranscribeJobEvent, StageTime>

const refused = (message: string, param: string): Effect.Effect<never, ApiError> =>
  Effect.fail(apiError("invalid_request_error", `${param}: ${message}`, { param }))

/** The transcription task of a Whisper model. It costs the seconds of the file. */
export const makeTranscribeTask = (
  deps: TranscribeTaskDeps,
): Task<TranscribeRequest, TranscribeEvent> => {
  const { id, engine, queueWaitMs, workers, clock, log } = deps
  const { rate, languages } = engine.info
  const samplesOf = Effect.fnUntraced(function* (
    { audio, format, seconds }: TranscribeRequest,
    context: ModelContext,
  ) {
    const input = { audio, format, rate, maxSeconds: seconds }
    const job = "../audio/decode-audio-job"
    const decoded = yield* timed(
      clock,
      context,
      "audio",
      inPool<DecodeAudioInput, DecodedAudio>(workers, log, job, input, { isLimited: true }),
    )
    return "refused" in decoded ? yield* refused(decoded.refused, "file") : decoded.samples
  })
  const plan = Effect.fnUntraced(function* (request: TranscribeRequest, context: ModelContext) {
    const { language, prompt, temperature, segments } = request
    if (language !== undefined && languages.length > 0 && !languages.includes(language))
      return yield* refused(`the model knows ${languages.join(", ")}`, "language")
    const wait = { priority: context.priority, waitMs: queueWaitMs }
    yield* engine.availableFor(wait)
    const samples = yield* samplesOf(request, context)
    // sampled answers can't be repeated: a request has no seed
    const { digest } = engine.info
    context.note?.({ model: digestFor(temperature === 0 ? { digest } : {}), cpu: cpu() })
    const usage = usageOf({ audioSeconds: request.seconds })
    const events = engine.run<HeardEvent>(
      {
        ...{ samples, temperature, segments, seed: freshSeed() },
        ...(language !== undefined && { language }),
        ...(prompt !== undefined && { prompt }),
      },
      {
        ...wait,
        account: context.tenant.account,
        timeoutMs: () => context.deadlineMs - clock.nowMs(),
        translate: (event) => {
          if (event.type !== "time") return [event]
          context.time(event.stage, event.durationMs)
          return undefined
        },
      },
    )
    let isMetered = false
    // whoever has read a part of it pays for the file
    const metered = Stream.tap(events, () =>
      Effect.sync(() => {
        if (!isMetered) context.meter(id, usage)
        isMetered = true
      }),
    )
    return { bound: usage, run: metered } satisfies ModelPlan<TranscribeEvent>
  })
  return { plan }
}
