import { Effect, Semaphore } from "effect"
import { type ApiError, apiError, portFailure } from "../../core/errors.ts"
import { megabyte } from "../../core/ports/endpoint.ts"
import type { Part } from "../../core/ports/model.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import type { Workers } from "../../core/services/workers.ts"
import { fromBase64, type MediaKind, mediaBytes } from "./media-source.ts"
import type { VideoBlock } from "./message-schema.ts"
import type { ChatSettings } from "./settings.ts"
import type { VideoFrames, VideoFramesInput } from "./video-frames-job.ts"

type Video = typeof VideoBlock.Type

/** A video block, and its path in the body. */
export interface PlacedVideo {
  readonly block: Video
  readonly param: string
}

/** The frames of a request's videos, by their blocks. */
export type Videos = ReadonlyMap<Video, readonly Part[]>

export const maxVideos = 4
const maxVideoBytes = 50 * megabyte

const video: MediaKind = {
  types: /^video\/(mp4|webm|quicktime|x-matroska|matroska)$/i,
  wanted:
    "must be a data URI of video/mp4, video/webm, video/quicktime or video/x-matroska in base64, or an https address",
  maxBytes: maxVideoBytes,
  tooLarge: "must have at most 50 MB",
}

export interface VideoDeps {
  readonly outbound: Outbound
  readonly workers: Workers
  readonly settings: ChatSettings
}

const jobModule = new URL(
  import.meta.url.endsWith(".ts") ? "./video-frames-job.ts" : "./video-frames-job.js",
  import.meta.url,
)
/** The job ends by itself before. */
const jobLimitMs = 20_000
const withQueue = "40 seconds"
// bounds the memory that frames take
const decoding = Semaphore.makeUnsafe(1)

const framesOf = (
  { workers, settings }: VideoDeps,
  bytes: Uint8Array,
): Effect.Effect<VideoFrames, ApiError> => {
  const input: VideoFramesInput = {
    bytes,
    perSecond: settings.framesPerSecond,
    most: settings.maxFrames,
    maxSeconds: settings.maxVideoSeconds,
  }
  const busy = () => Effect.fail(apiError("server_busy"))
  return decoding
    .withPermits(1)(workers.run<VideoFramesInput, VideoFrames>(jobModule, input, jobLimitMs))
    .pipe(
      Effect.catch((error) => (error.why === "slow" ? busy() : Effect.fail(portFailure(error)))),
      Effect.timeoutOrElse({ duration: withQueue, orElse: busy }),
    )
}

/** Where a block has its video. */
export const sourceOf = (block: Video) => {
  if (block.type === "video_url") return { field: "video_url.url", url: block.video_url.url }
  const { url, data } = block.input_video
  return url != null
    ? { field: "input_video.url", url }
    : { field: "input_video.data", data: data ?? "" }
}

/**
 * Reads the videos of a request as frames, which models see as images in their order. Fails with 400
 * and the path of the first that is wrong.
 */
export const readVideos = Effect.fnUntracedEager(function* (
  deps: VideoDeps,
  placed: readonly PlacedVideo[],
) {
  const wrong = (param: string, what: string) =>
    apiError("invalid_request_error", `${param}: ${what}`, { param })
  const extra = placed[maxVideos]
  if (extra) return yield* wrong(extra.param, `a request may have ${maxVideos} videos`)
  const videos = new Map<Video, readonly Part[]>()
  let all = 0
  for (const { block, param } of placed) {
    const { field, url, data } = { url: undefined, data: "", ...sourceOf(block) }
    const path = `${param}.${field}`
    const isInline = url === undefined && !data.startsWith("data:")
    const bytes = isInline
      ? fromBase64(data, video)
      : yield* mediaBytes(deps.outbound, url ?? data, video)
    if (typeof bytes === "string") return yield* wrong(path, bytes)
    all += bytes.length
    if (all > maxVideoBytes) return yield* wrong(path, "all videos of a request may have 50 MB")
    const found = yield* framesOf(deps, bytes)
    if ("refused" in found) return yield* wrong(path, `the video ${found.refused}`)
    const last = found.frames.length - 1
    const parts = found.frames.map(
      (frame, at): Part => ({
        type: "media",
        mediaType: "image/png",
        bytes: frame,
        ...(block.cache_control && at === last && { cacheBreakpoint: true }),
      }),
    )
    videos.set(block, parts)
  }
  return videos
})
