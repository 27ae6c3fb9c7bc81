import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { megabyte } from "../../core/ports/endpoint.ts"
import type { Part } from "../../core/ports/model.ts"
import { fromBase64 } from "./media-source.ts"
import type { AudioBlock } from "./message-schema.ts"

type Sound = typeof AudioBlock.Type

/** A block with a sound, and its path in the body. */
export interface PlacedSound {
  readonly block: Sound
  readonly param: string
}

/** The files of a request's sounds, by their blocks. */
export type Sounds = ReadonlyMap<Sound, Part>

export const maxSounds = 8
const limits = { maxBytes: 25 * megabyte, tooLarge: "must have at most 25 MB" }
const maxBytes = 25 * megabyte
const mediaTypes = { wav: "audio/wav", mp3: "audio/mpeg" } as const

const base64Of = (data: string): string =>
  data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data

const isWav = (file: Buffer): boolean =>
  file.subarray(0, 4).toString("latin1") === "RIFF" &&
  file.subarray(8, 12).toString("latin1") === "WAVE"

/** A tag of ID3v2, or the first eleven bits of a frame of layer III. */
const isMp3 = (file: Buffer): boolean =>
  file.subarray(0, 3).toString("latin1") === "ID3" ||
  (file[0] === 0xff && (file[1]! & 0xe6) === 0xe2)

/**
 * Reads the sounds of a request; they are decoded by the model's backend. Fails with 400 and the path
 * of the first that is wrong.
 */
export const readSounds = (placed: readonly PlacedSound[]): Effect.Effect<Sounds, ApiError> => {
  const wrong = (param: string, what: string) =>
    Effect.fail(apiError("invalid_request_error", `${param}: ${what}`, { param }))
  const extra = placed[maxSounds]
  if (extra) return wrong(extra.param, `a request may have ${maxSounds} sounds`)
  const sounds = new Map<Sound, Part>()
  let all = 0
  for (const { block, param } of placed) {
    const path = `${param}.input_audio.data`
    const { data, format } = block.input_audio
    const bytes = fromBase64(base64Of(data), limits)
    if (typeof bytes === "string") return wrong(path, bytes)
    all += bytes.length
    if (all > maxBytes) return wrong(path, "all sounds of a request may have 25 MB")
    if (!(format === "wav" ? isWav : isMp3)(bytes))
      return wrong(path, `is no ${format.toUpperCase()} file`)
    sounds.set(block, {
      type: "media",
      mediaType: mediaTypes[format],
      bytes,
      ...(block.cache_control && { cacheBreakpoint: true }),
    })
  }
  return Effect.succeed(sounds)
}
