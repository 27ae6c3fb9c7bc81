import { Effect, Semaphore } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { ImagePreprocessing, Picture } from "../architectures/image-preprocessing.ts"
import { inPool } from "../chat-format/pool.ts"
import type { Refused } from "./decode-image.ts"
import type { DecodeImageInput } from "./decode-image-job.ts"

/** An image file, and its place in the request's input. */
export interface ImageFile {
  readonly index: number
  readonly bytes: Uint8Array
}

/**
 * libvips works in threads of Node's own pool, of which there are four, and files are read and
 * written there too. Two images at a time also bound the memory that they take.
 */
const atOnce = 2
const decoding = Semaphore.makeUnsafe(atOnce)

/** Runs a job of this folder that decodes an image: what it makes of it, or what is wrong with it. */
export const decodeInPool = <Input, Image>(
  workers: Workers,
  log: Log,
  job: string,
  input: Input,
): Effect.Effect<Image | Refused, ApiError> =>
  decoding.withPermits(1)(
    inPool<Input, Image | Refused>(workers, log, job, input, { isLimited: true }),
  )

/**
 * Returns the pixels of images as a vision tower reads them, decoded in the thread pool. The first
 * that is no image fails the request with 400, naming its place in the request's `field`.
 */
export const decodeImages = (
  workers: Workers,
  log: Log,
  files: readonly ImageFile[],
  preprocessing: ImagePreprocessing,
  field = "input",
): Effect.Effect<readonly Picture[], ApiError> =>
  Effect.gen(function* () {
    const decoded = yield* Effect.forEach(
      files,
      ({ bytes }) =>
        decodeInPool<DecodeImageInput, Picture>(workers, log, "../images/decode-image-job", {
          bytes,
          preprocessing,
        }),
      // a request with eight queues no more of them than one with two does
      { concurrency: atOnce },
    )
    return yield* Effect.forEach(decoded, (image, at) => {
      if ("pixels" in image) return Effect.succeed(image)
      const param = `${field}[${files[at]!.index}]`
      return apiError("invalid_request_error", `${param}: the image ${image.refused}`, { param })
    })
  })
