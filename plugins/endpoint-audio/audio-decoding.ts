import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { TranscribeRequest } from "../../core/ports/audio.ts"
import { isMp3, mp3Sound } from "./mp3-length.ts"
import type { Source } from "./schema.ts"
import { wavSound } from "./wav-length.ts"

export const maxFileBytes = 25 * 2 ** 20

const wrong = (why: string): ApiError =>
  apiError("invalid_request_error", `file: ${why}`, { param: "file" })

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

const bytesOf = (source: Source): Uint8Array | undefined => {
  if (typeof source !== "string") return source
  const text = source.startsWith("data:") ? source.slice(source.indexOf(",") + 1) : source
  return text.length % 4 === 0 && base64.test(text) ? Buffer.from(text, "base64") : undefined
}

const isWav = (file: Uint8Array): boolean => {
  const head = Buffer.from(file.subarray(0, 12)).toString("latin1")
  return head.startsWith("RIFF") && head.endsWith("WAVE")
}

export type Audio = Pick<TranscribeRequest, "audio" | "format" | "seconds">

/** By the first bytes, whatever the file is called. `maxSeconds`: what the deployment takes. */
export const readAudio = (source: Source, maxSeconds: number): Effect.Effect<Audio, ApiError> =>
  Effect.suspend((): Effect.Effect<Audio, ApiError> => {
    const audio = bytesOf(source)
    if (!audio) return Effect.fail(wrong("must be base64, or a data URI"))
    if (audio.length === 0) return Effect.fail(wrong("is empty"))
    if (audio.length > maxFileBytes)
      return Effect.fail(
        apiError("payload_too_large", `file: must have at most ${maxFileBytes} bytes`, {
          param: "file",
        }),
      )
    const format = isWav(audio) ? "wav" : isMp3(audio) ? "mp3" : undefined
    if (!format)
      return Effect.fail(
        apiError("unsupported_file_type", "file: must be a WAV or MP3 file", { param: "file" }),
      )
    const sound = format === "wav" ? wavSound(audio) : mp3Sound(audio)
    if (typeof sound === "string") return Effect.fail(wrong(sound))
    const { seconds } = sound
    if (seconds === 0) return Effect.fail(wrong("has no sound"))
    if (seconds > maxSeconds)
      return Effect.fail(
        wrong(`has ${Math.ceil(seconds)} s of audio; at most ${maxSeconds} s are transcribed`),
      )
    return Effect.succeed({ audio: sound.audio, format, seconds: Math.ceil(seconds) })
  })
