import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ImageEvent } from "../../../core/ports/image.ts"
import type { ImageRequest, ModelContext, ModelPlan, Task } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"
import { inPool, timed } from "../chat-format/pool.ts"
import type { ImageInfo, ImageJobEvent, ImageJobRequest } from "../diffusion/engine/image-job.ts"
import type { Pixels } from "../diffusion/model.ts"
import { decodeImages } from "../images/decode-images.ts"
import type { EncodePngInput } from "../images/encode-png-job.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { cpu, digestFor } from "./evidence.ts"

export interface ImageTaskDeps {
  readonly id: ModelId
  readonly engine: Engine<ImageJobRequest, ImageJobEvent, ImageInfo>
  /** How long a request waits for a slot. */
  readonly queueWaitMs: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

type PictureEvent = Exclude<ImageJobEvent, StageTime>

/** The longest side of a preview. */
const previewSide = 256
/** References are divided into squares of so many pixels, whole ones. */
const square = 16

/**
 * How a source is read: stretched to the size of the result where the picture begins from it; where
 * the model only looks at it, in its own size as far as the model takes it, or else in its own shape
 * with about as many pixels as the result.
 */
const resizeFor = (
  { sources, sourcePixels }: ImageInfo,
  { width, height }: ImageRequest,
): ImagePreprocessing["resize"] => {
  if (sources !== "seen") return { mode: "exact", width, height }
  if (sourcePixels !== undefined) return { mode: "area", most: sourcePixels }
  const most = Math.max(1, Math.floor((width * height) / square ** 2))
  return { mode: "patches", patch: square, most }
}

const sourceSize = (info: ImageInfo, request: ImageRequest): ImagePreprocessing => ({
  width: request.width,
  height: request.height,
  resize: resizeFor(info, request),
  kernel: "lanczos3",
  mean: [0, 0, 0],
  std: [1, 1, 1],
  rescale: 1,
})

const refused = (
  message: string,
  param: string,
  code: "invalid_request_error" | "unsupported_parameter",
) => Effect.fail(apiError(code, message, { param }))

/** Fails with the 400 of a request that this model can't take. */
const checked = (
  { sources, maxSources, maxSteps, maxSide, adapters }: ImageInfo,
  { images, steps, adapter, width, height }: ImageRequest,
): Effect.Effect<void, ApiError> => {
  if (maxSide !== undefined && Math.max(width, height) > maxSide)
    return refused(
      `This model draws at most ${maxSide} x ${maxSide} pixels, not ${width} x ${height}.`,
      "size",
      "invalid_request_error",
    )
  if (maxSteps !== undefined && steps > maxSteps)
    return refused(
      `This model draws in at most ${maxSteps} steps, not ${steps}.`,
      "num_steps",
      "invalid_request_error",
    )
  if (images.length > 0 && sources === "none")
    return refused("This model takes no images.", "images", "unsupported_parameter")
  if (images.length > maxSources)
    return refused(
      `This model takes ${maxSources === 1 ? "one image" : `at most ${maxSources} images`}, not ${images.length}.`,
      "images",
      "unsupported_parameter",
    )
  if (adapter && !adapters.includes(adapter.id))
    return refused(`The model has no LoRA '${adapter.id}'.`, "lora", "invalid_request_error")
  return Effect.void
}

/** Reads the pictures of a request, and makes the files of its events. */
const makeFiles = ({ id, engine, workers, clock, log }: ImageTaskDeps) => {
  const png = (context: ModelContext, picture: Pixels, into: EncodePngInput["into"]) => {
    const input = { ...picture, into }
    const job = "../images/encode-png-job"
    const made = inPool<EncodePngInput, Uint8Array>(workers, log, job, input, { isLimited: true })
    return timed(clock, context, "png", made)
  }
  const read = (request: ImageRequest, context: ModelContext) => {
    if (request.images.length === 0) return Effect.succeed([])
    const files = request.images.map((bytes, index) => ({ index, bytes }))
    const size = sourceSize(engine.info, request)
    const decoded = decodeImages(workers, log, files, size, "images")
    return timed(clock, context, "images", decoded)
  }
  /** A picture is metered when its file is made. */
  const made = Effect.fnUntraced(function* (
    event: PictureEvent,
    { width, height }: ImageRequest,
    context: ModelContext,
  ) {
    if (event.type === "picture") {
      const bytes = yield* png(context, event.picture, { width, height, fit: "cover" })
      context.meter(id, usageOf({ images: 1 }))
      return { type: "image", mediaType: "image/png", bytes } satisfies ImageEvent
    }
    const { preview: small, ...step } = event
    if (!small) return step satisfies ImageEvent
    const into = { width: previewSide, height: previewSide, fit: "inside" } as const
    return { ...step, preview: yield* png(context, small, into) } satisfies ImageEvent
  })
  return { read, made }
}

/** The task of an engine that makes pictures. */
export const makeImageTask = (deps: ImageTaskDeps): Task<ImageRequest, ImageEvent> => {
  const { engine, queueWaitMs, clock } = deps
  const files = makeFiles(deps)
  const plan = Effect.fnUntraced(function* (request: ImageRequest, context: ModelContext) {
    yield* checked(engine.info, request)
    const wait = { priority: context.priority, waitMs: queueWaitMs }
    yield* engine.availableFor(wait)
    const pictures = yield* files.read(request, context)
    context.note?.({ model: digestFor(engine.info, request.adapter), cpu: cpu() })
    const { images: _, ...asked } = request
    const sources = pictures.map(({ pixels, width, height }) => ({ data: pixels, width, height }))
    const events = engine.run<PictureEvent>(
      { ...asked, sources, previewSide },
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
    const planned: ModelPlan<ImageEvent> = {
      bound: usageOf({ images: 1 }),
      run: Stream.mapEffect(events, (event) => files.made(event, request, context)),
    }
    return planned
  })
  return { plan }
}
