import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { DecodeAudioInput, DecodedAudio } from "../audio/decode-audio-job.ts"
import { inPool } from "../chat-format/pool.ts"
import type { Media } from "./chat-media.ts"

export const wrongSound = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: the sound ${why}`, { param })

/**
 * Decodes a sound of a chat request in the pool: mono, `rate` samples a second. Fails with 400 and
 * its path where it can't be read, or is longer than `maxSeconds`.
 */
export const decodedSound = Effect.fnUntraced(function* (
  { workers, log }: { readonly workers: Workers; readonly log: Log },
  { bytes, mediaType }: Media,
  param: string,
  { rate, maxSeconds }: Pick<DecodeAudioInput, "rate" | "maxSeconds">,
) {
  const format = mediaType === "audio/mpeg" ? "mp3" : "wav"
  const input: DecodeAudioInput = { audio: bytes, format, rate, maxSeconds }
  const job = "../audio/decode-audio-job"
  const made = yield* inPool<DecodeAudioInput, DecodedAudio>(workers, log, job, input, {
    isLimited: true,
  })
  if ("refused" in made) return yield* wrongSound(param, made.refused)
  return made.samples.subarray(0, maxSeconds * rate)
})
