import { hash } from "node:crypto"
import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatRequest, ModelContext } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { Picture } from "../architectures/image-preprocessing.ts"
import { timed } from "../chat-format/pool.ts"
import type { PromptImages } from "../chat-format/prompt-images.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import { decodeInPool } from "../images/decode-images.ts"
import type { TiledImage } from "../images/decode-tiles.ts"
import type { DecodeTilesInput } from "../images/decode-tiles-job.ts"
import type { SightInfo } from "../vision/open-sight-engine.ts"
import type { VisionJobRequest } from "../vision/vision-job.ts"
import type { Engine } from "../worker/host.ts"
import {
  type ChatMedia,
  type Grid,
  idsOf,
  type Media,
  markOf,
  mediaIn,
  type ReadMedia,
} from "./chat-media.ts"
import {
  type EncodedImage,
  type EncodedImages,
  encodedImages,
  imageTokens,
} from "./encoded-images.ts"
import { keptOrMade } from "./recently-used.ts"

export type SightEngine = Engine<VisionJobRequest, EmbedJobEvent, SightInfo>

export interface ChatImagesDeps {
  readonly engine: SightEngine
  /** The memory for encoded images. */
  readonly cacheBytes: number
  /** See `PromptImages`. */
  readonly imageToken: number | undefined
  readonly contextTokens: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

/** An image of a request: encoded already, or as pixels. */
interface ReadImage {
  /** The account and the digest: what is kept is not shared. */
  readonly key: string
  readonly digest: Buffer
  readonly image: EncodedImage | TiledImage
}

/** Neighbouring texts as one, as they are tokenized. */
const joined = (parts: readonly (string | Int32Array)[]): readonly (string | Int32Array)[] => {
  const all: (string | Int32Array)[] = []
  for (const part of parts) {
    const last = all.at(-1)
    if (typeof part === "string" && typeof last === "string") all[all.length - 1] = last + part
    else all.push(part)
  }
  return all
}

const fake = "<fake_token_around_image>"

/** What stands in the prompt for an image, as the processor of its family writes it. */
export const promptParts = (
  { digest, image }: Pick<ReadImage, "digest"> & { readonly image: Grid },
  { family, tokens }: Pick<SightInfo, "family" | "tokens">,
): readonly (string | Int32Array)[] => {
  const ids = idsOf(digest, imageTokens(image, { tokens }))
  if (family !== "idefics3" || tokens === undefined) return [ids]
  const tile = (index: number) => ids.subarray(index * tokens, (index + 1) * tokens)
  const { rows, columns } = image
  const parts: (string | Int32Array)[] = []
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const isLast = column === columns - 1
      const label = `${fake}<row_${row + 1}_col_${column + 1}>`
      parts.push(label, tile(row * columns + column), ...(isLast ? ["\n"] : []))
    }
  const before = rows > 0 ? "\n" : ""
  return joined([...parts, `${before}${fake}<global-img>`, tile(rows * columns), fake])
}

/** An image that is looked at less closely is another one. */
const digestOf = (bytes: Uint8Array, isSmall: boolean): Buffer => {
  const digest = hash("sha256", bytes, "buffer")
  return isSmall ? hash("sha256", Buffer.concat([digest, Buffer.from("low")]), "buffer") : digest
}

/** Tokens of an image that is looked at less closely: about 448 x 448 pixels of Qwen-VL. */
const fewTokens = 256

type Reading = Pick<SightInfo, "preprocessing" | "tiling">

/** How images are read with `detail: low`: as one tile, or with fewer pixels. */
const smaller = ({ preprocessing, tiling }: Reading): Reading => {
  const { resize } = preprocessing
  if (resize.mode !== "squares")
    return { preprocessing, ...(tiling && { tiling: { ...tiling, splits: false } }) }
  const most = Math.min(resize.most, fewTokens * resize.side ** 2)
  return {
    preprocessing: {
      ...preprocessing,
      resize: { ...resize, most, least: Math.min(resize.least, most) },
    },
  }
}

/** Returns what decodes an image of a request, unless it is kept. */
const makeReader =
  ({ engine, workers, log }: ChatImagesDeps, kept: EncodedImages) =>
  (part: Media, param: string, context: ModelContext): Effect.Effect<ReadImage, ApiError> =>
    Effect.gen(function* () {
      const isSmall = part.detail === "low"
      const digest = digestOf(part.bytes, isSmall)
      const { account, mode } = context.tenant
      const key = JSON.stringify([account, mode, digest.toString("base64")])
      const known = kept.get(key)
      if (known) return { key, digest, image: known }
      const { preprocessing, tiling } = isSmall ? smaller(engine.info) : engine.info
      const input = { bytes: part.bytes, preprocessing, ...(tiling && { tiling }) }
      const image = yield* decodeInPool<DecodeTilesInput, TiledImage>(
        workers,
        log,
        "../images/decode-tiles-job",
        input,
      )
      if (!("refused" in image)) return { key, digest, image }
      return yield* apiError("invalid_request_error", `${param}: the image ${image.refused}`, {
        param,
      })
    })

/** Runs the tower over the tiles of an image; returns the rows of all, one after the other. */
const encode = (
  { engine, clock }: ChatImagesDeps,
  tiles: readonly Picture[],
  context: ModelContext,
): Effect.Effect<Float32Array, ApiError> => {
  const vectors = engine.run<Extract<EmbedJobEvent, { readonly type: "vector" }>>(
    { images: tiles },
    {
      account: context.tenant.account,
      priority: context.priority,
      waitMs: Number.POSITIVE_INFINITY,
      timeoutMs: () => context.deadlineMs - clock.nowMs(),
      translate: (event) => {
        if (event.type === "vector") return [event]
        if (event.stage === "prefill") context.time("images", event.durationMs)
        return undefined
      },
    },
  )
  return Effect.map(Stream.runCollect(vectors), (all) => {
    const vectors: Float32Array[] = []
    for (const { index, vector } of all) vectors[index] = vector
    const embedded = new Float32Array(vectors.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const vector of vectors) {
      embedded.set(vector, at)
      at += vector.length
    }
    return embedded
  })
}

/** Returns what encodes an image, once for all requests that wait for it, and keeps it. */
const makeEncoder = (deps: ChatImagesDeps, kept: EncodedImages) => {
  const keptOr = keptOrMade(kept)
  return ({ key, image }: ReadImage, context: ModelContext) => {
    if ("embedded" in image) return Effect.succeed(image)
    const { tiles, rows, columns } = image
    const work = Effect.map(
      encode(deps, tiles, context),
      (embedded): EncodedImage => ({ rows, columns, embedded }),
    )
    // another request may have encoded it meanwhile
    return keptOr(key, work)
  }
}

/** Reads the images of chat requests, and encodes them: each of them once while it is kept. */
export const makeChatImages = (deps: ChatImagesDeps): ChatMedia => {
  const { engine, cacheBytes, imageToken, contextTokens, clock } = deps
  const kept = encodedImages(cacheBytes)
  const readOne = makeReader(deps, kept)
  const encoded = makeEncoder(deps, kept)

  /**
   * Decodes the images of a request that are not kept. Fails with 400 and the path of the first that
   * is no image, or with which they have more tokens than the window.
   */
  const read = Effect.fnUntraced(function* (request: ChatRequest, context: ModelContext) {
    const images: ReadImage[] = []
    let tokens = 0
    for (const { part, param } of mediaIn(request, "image_url.url")) {
      const one = yield* timed(clock, context, "images", readOne(part, param, context))
      images.push(one)
      tokens += imageTokens(one.image, engine.info)
      if (tokens >= contextTokens)
        return yield* apiError(
          "context_length_exceeded",
          `The images have at least ${tokens} tokens, but the model's window is ${contextTokens} tokens.`,
          { param },
        )
    }
    const mark = markOf(request)
    if (typeof mark !== "string") return yield* mark
    const prompt: PromptImages = {
      mark,
      token: imageToken,
      parts: images.map((image) => promptParts(image, engine.info)),
    }
    const all: ReadMedia = {
      prompt,
      tokens,
      digest: engine.info.digest,
      ...(engine.info.family === "qwen" && {
        grids: images.map(({ image: { rows, columns } }) => ({ rows, columns })),
      }),
      encoded: Effect.forEach(images, (image) =>
        Effect.map(encoded(image, context), ({ embedded }) => embedded),
      ),
    }
    return all
  })
  return { read }
}
