import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import { megabyte } from "../../core/ports/endpoint.ts"
import type { Part } from "../../core/ports/model.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import { imageHeader } from "./image-file.ts"
import { type MediaKind, mediaBytes } from "./media-source.ts"
import type { ImageBlock } from "./message-schema.ts"

type Image = typeof ImageBlock.Type

/** An image block, and its path in the body. */
export interface PlacedImage {
  readonly block: Image
  readonly param: string
}

/** The bytes of a request's images, by their blocks. */
export type Images = ReadonlyMap<Image, Part>

export const maxImages = 16
const maxImageBytes = 20 * megabyte
/** All images of a request together: as many as a body may have. */
const maxBytes = 50 * megabyte
/** As many as 8192 x 8192 has, which is what backends decode at most. */
const maxPixels = 2 ** 26

const image: MediaKind = {
  types: /^image\/(png|jpe?g|webp|gif)$/i,
  wanted:
    "must be a data URI of image/png, image/jpeg, image/webp or image/gif in base64, or an https address",
  maxBytes: maxImageBytes,
  tooLarge: "must have at most 20 MB",
}

/** What is wrong with a file by its size and header; nothing is decoded here. */
const checked = (
  bytes: Buffer,
): Omit<Extract<Part, { type: "media" }>, "cacheBreakpoint"> | string => {
  if (bytes.length > maxImageBytes) return image.tooLarge
  const header = imageHeader(bytes)
  if (!header) return "is no PNG, JPEG, WebP or GIF"
  const { width = 1, height = 1 } = header.size ?? {}
  if (width * height > maxPixels)
    return `has ${width} x ${height} pixels; at most ${maxPixels.toLocaleString("en")} are taken`
  return { type: "media", mediaType: header.mediaType, bytes }
}

/**
 * Reads the images of a request: data URIs, and addresses, which are fetched one after the other
 * through the guard. Fails with 400 and the path of the first that is wrong.
 */
export const readImages = Effect.fnUntracedEager(function* (
  outbound: Outbound,
  placed: readonly PlacedImage[],
) {
  const wrong = (param: string, what: string) =>
    apiError("invalid_request_error", `${param}: ${what}`, { param })
  const extra = placed[maxImages]
  if (extra) return yield* wrong(extra.param, `a request may have ${maxImages} images`)
  const images = new Map<Image, Part>()
  let all = 0
  for (const { block, param } of placed) {
    const { url } = block.image_url
    const path = `${param}.url`
    const bytes = yield* mediaBytes(outbound, url, image)
    if (typeof bytes === "string") return yield* wrong(path, bytes)
    all += bytes.length
    if (all > maxBytes) return yield* wrong(path, "all images of a request may have 50 MB")
    const part = checked(bytes)
    if (typeof part === "string") return yield* wrong(path, part)
    const { detail } = block.image_url
    images.set(block, {
      ...part,
      ...(detail != null && detail !== "auto" && { detail }),
      ...(block.cache_control && { cacheBreakpoint: true }),
    })
  }
  return images
})
