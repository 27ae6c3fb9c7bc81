import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { megabyte } from "../../core/ports/endpoint.ts"
import type { Part } from "../../core/ports/model.ts"
import type { ImageItem } from "./schema.ts"

const maxImageBytes = 20 * megabyte

const startsWith = (bytes: Uint8Array, text: string, at = 0) =>
  [...text].every((char, i) => bytes[at + i] === char.charCodeAt(0))

/** The formats' signatures: their first bytes. */
const formats: readonly {
  readonly mediaType: string
  readonly fits: (bytes: Uint8Array) => boolean
}[] = [
  { mediaType: "image/png", fits: (bytes) => startsWith(bytes, "\x89PNG\r\n\x1a\n") },
  { mediaType: "image/jpeg", fits: (bytes) => startsWith(bytes, "\xff\xd8\xff") },
  {
    mediaType: "image/gif",
    fits: (bytes) => startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a"),
  },
  {
    mediaType: "image/webp",
    fits: (bytes) => startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8),
  },
]

export const mediaTypeOf = (bytes: Uint8Array): string | undefined =>
  formats.find(({ fits }) => fits(bytes))?.mediaType

/**
 * Strict base64 of RFC 4648, section 4: padded, no other characters. Searches for a wrong
 * character, as matching
 * megabytes overflows the stack of the regex engine.
 */
const isBase64 = (text: string) => {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="))
  return text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))
}

/** Returns the field that holds the image, and its text. */
const source = (
  item: ImageItem,
): { readonly field: string; readonly text: string; readonly isUri: boolean } => {
  if ("image" in item) return { field: "image", text: item.image, isUri: false }
  return typeof item.image_url === "string"
    ? { field: "image_url", text: item.image_url, isUri: true }
    : { field: "image_url.url", text: item.image_url.url, isUri: true }
}

/**
 * Returns the data of `data:<type>;base64,<data>` of an image; which of the formats it is, its first
 * bytes say.
 */
const dataOf = (uri: string): string | undefined => {
  const comma = uri.slice(0, 256).indexOf(",")
  return comma > 0 &&
    /^data:image\/(png|jpe?g|webp|gif)(;[^,]*)?;base64$/i.test(uri.slice(0, comma))
    ? uri.slice(comma + 1)
    : undefined
}

const read = (item: ImageItem): Part | string => {
  const { text, isUri } = source(item)
  const base64 = isUri ? dataOf(text) : text
  if (base64 === undefined)
    return "must be a data URI of image/png, image/jpeg, image/webp or image/gif in base64; images are not fetched"
  if ((base64.length / 4) * 3 > maxImageBytes + 2) return "must have at most 20 MB"
  if (!isBase64(base64))
    return /^data:/i.test(base64)
      ? "must be base64 alone; a data URI goes into image_url"
      : "is not valid base64"
  const bytes = Buffer.from(base64, "base64")
  if (bytes.length > maxImageBytes) return "must have at most 20 MB"
  const mediaType = mediaTypeOf(bytes)
  return mediaType === undefined
    ? "is no PNG, JPEG, WebP or GIF"
    : { type: "media", mediaType, bytes }
}

/**
 * Returns the bytes of the image item at `path` (`input[3]`), or fails with 400 and the field as
 * `param`.
 */
export const toMedia = (item: ImageItem, path: string): Effect.Effect<Part, ApiError> =>
  Effect.suspend(() => {
    const result = read(item)
    if (typeof result !== "string") return Effect.succeed(result)
    const param = `${path}.${source(item).field}`
    return Effect.fail(apiError("invalid_request_error", `${param}: ${result}`, { param }))
  })
