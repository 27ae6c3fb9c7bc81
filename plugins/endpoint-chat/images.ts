import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import { megabyte } from "../../core/ports/endpoint.ts"
import type { Part } from "../../core/ports/model.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import { imageHeader } from "./image-file.ts"
import type { ImageBlock } from "./message-schema.ts"
import type { ChatBody } from "./request-schema.ts"

type Block = Exclude<NonNullable<ChatBody["messages"][number]["content"]>, string>[number]
type Image = typeof ImageBlock.Type

/** An image block, and its path in the body. */
interface PlacedImage {
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
const fetchTimeoutMs = 10_000

/** The image blocks of a request, in their order. */
export const imagesIn = ({ messages }: ChatBody): readonly PlacedImage[] =>
  messages.flatMap(({ content }, m) =>
    Array.isArray(content)
      ? (content as readonly Block[]).flatMap((block, b) =>
          block.type === "image_url"
            ? [{ block, param: `messages[${m}].content[${b}].image_url` }]
            : [],
        )
      : [],
  )

/**
 * Strict base64 of RFC 4648, section 4: padded, no other characters. Searches for a wrong character,
 * as matching megabytes overflows the stack of the regex engine.
 */
const isBase64 = (text: string): boolean => {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="))
  return text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))
}

const tooLarge = "must have at most 20 MB"

/** The bytes of a data URI, or what is wrong with it; which format it is, its first bytes say. */
const fromDataUri = (uri: string): Buffer | string => {
  const comma = uri.slice(0, 256).indexOf(",")
  const isImage = /^data:image\/(png|jpe?g|webp|gif)(;[^,]*)?;base64$/i.test(uri.slice(0, comma))
  if (comma < 0 || !isImage)
    return "must be a data URI of image/png, image/jpeg, image/webp or image/gif in base64, or an https address"
  if (((uri.length - comma - 1) / 4) * 3 > maxImageBytes + 2) return tooLarge
  const base64 = uri.slice(comma + 1)
  return isBase64(base64) ? Buffer.from(base64, "base64") : "is not valid base64"
}

const fetched = (outbound: Outbound, url: string): Effect.Effect<Buffer | string> =>
  outbound.send({ method: "GET", url, timeoutMs: fetchTimeoutMs, maxBytes: maxImageBytes }).pipe(
    Effect.map(({ status, body, truncated }) => {
      if (status !== 200)
        return `could not be fetched: the server answered ${status}, and redirects are not followed`
      return truncated ? tooLarge : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    }),
    Effect.catch(({ message }) => Effect.succeed(`could not be fetched: ${message}`)),
  )

const isAddress = (url: string): boolean => /^https?:/i.test(url.slice(0, 8))

/** What is wrong with a file by its size and header; nothing is decoded here. */
const checked = (
  bytes: Buffer,
): Omit<Extract<Part, { type: "media" }>, "cacheBreakpoint"> | string => {
  if (bytes.length > maxImageBytes) return tooLarge
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
export const readImages = Effect.fnUntraced(function* (
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
    const bytes = isAddress(url) ? yield* fetched(outbound, url) : fromDataUri(url)
    if (typeof bytes === "string") return yield* wrong(path, bytes)
    all += bytes.length
    if (all > maxBytes) return yield* wrong(path, "all images of a request may have 50 MB")
    const part = checked(bytes)
    if (typeof part === "string") return yield* wrong(path, part)
    images.set(block, { ...part, ...(block.cache_control && { cacheBreakpoint: true }) })
  }
  return images
})
