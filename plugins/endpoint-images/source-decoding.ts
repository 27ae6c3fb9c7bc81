import { createHash } from "node:crypto"
import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import { pictureSize } from "./picture-header.ts"
import type { EditBody, Source } from "./schema.ts"
import type { Size } from "./size.ts"

export interface DecodedSource extends Size {
  readonly bytes: Uint8Array
  /** SHA-256, for the receipt. */
  readonly digest: string
}

/** Characters or bytes that are worked on at once, in under a millisecond; a multiple of 4. */
const piece = 2 ** 18

/** Lets other requests go on. */
const breathe = Effect.callback<void>((resume) => {
  const waiting = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(waiting))
})

/** Returns the data of `data:<type>;base64,<data>`; which format it is, its first bytes say. */
const dataOf = (text: string): string | undefined => {
  if (!/^data:/i.test(text)) return text
  const comma = text.slice(0, 256).indexOf(",")
  return comma > 0 &&
    /^data:image\/(png|jpe?g|webp|gif)(;[^,]*)?;base64$/i.test(text.slice(0, comma))
    ? text.slice(comma + 1)
    : undefined
}

const invalid = "is not valid base64"

/**
 * Whether a text has what Node's decoder would take for base64: the alphabet of URLs, or characters
 * beyond ASCII. A regular expression over the whole text takes twenty times as long.
 */
const isOther = (part: string): boolean =>
  part.includes("-") || part.includes("_") || Buffer.byteLength(part) !== part.length

/**
 * Strict base64 of RFC 4648, section 4: padded, no other characters. Tens of megabytes are decoded
 * piece by piece, as nothing else runs meanwhile.
 */
const decoded = (text: string): Effect.Effect<Buffer | string> =>
  Effect.gen(function* () {
    const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="))
    if (text.length === 0 || text.length % 4 !== 0) return invalid
    const bytes = Buffer.allocUnsafe((text.length / 4) * 3 - padding)
    let written = 0
    for (let from = 0; from < text.length; from += piece) {
      if (from > 0) yield* breathe
      const part = text.slice(from, from + piece)
      if (isOther(part)) return invalid
      const wanted = Math.min((part.length / 4) * 3, bytes.length - written)
      // other characters are left out, and what is behind padding is
      if (bytes.write(part, written, "base64") !== wanted) return invalid
      written += wanted
    }
    return bytes
  })

const digestOf = (bytes: Uint8Array): Effect.Effect<string> =>
  Effect.gen(function* () {
    const hash = createHash("sha256")
    for (let from = 0; from < bytes.length; from += piece) {
      if (from > 0) yield* breathe
      hash.update(bytes.subarray(from, from + piece))
    }
    return `sha256:${hash.digest("hex")}`
  })

const read = (source: Source): Effect.Effect<DecodedSource | string> =>
  Effect.gen(function* () {
    const base64 = typeof source === "string" ? dataOf(source) : undefined
    if (typeof source === "string" && base64 === undefined)
      return "must be a data URI of image/png, image/jpeg, image/webp or image/gif in base64"
    if (typeof source === "string" && /^https?:/i.test(source.slice(0, 8)))
      return "must be base64 or a data URI; images are not fetched"
    const bytes = base64 === undefined ? (source as Uint8Array) : yield* decoded(base64)
    if (typeof bytes === "string") return bytes
    const size = pictureSize(bytes)
    if (typeof size === "string") return size
    return { bytes, ...size, digest: yield* digestOf(bytes) }
  })

/**
 * Returns the source images of an edit, or fails with 400 and `image` or `images[i]` as `param`.
 * What their headers say is within bounds; whether they can be decoded, the model finds out.
 */
export const readSources = ({
  image,
  images,
}: Pick<EditBody, "image" | "images">): Effect.Effect<
  readonly [DecodedSource, ...DecodedSource[]],
  ApiError
> =>
  Effect.gen(function* () {
    const sources = images ?? (image == null ? [] : [image])
    const found: DecodedSource[] = []
    for (const [at, source] of sources.entries()) {
      const result = yield* read(source)
      const param = images ? `images[${at}]` : "image"
      if (typeof result === "string")
        return yield* apiError("invalid_request_error", `${param}: ${result}`, { param })
      found.push(result)
    }
    // the schema wants at least one
    return found as unknown as readonly [DecodedSource, ...DecodedSource[]]
  })

/** A model names the first image `images[0]`, also where the request has it as `image`. */
export const namedAsSent = ({ image }: Pick<EditBody, "image">, error: ApiError): ApiError =>
  image != null && error.param?.startsWith("images[0]")
    ? apiError(error.code, error.message.replace("images[0]", "image"), {
        param: error.param.replace("images[0]", "image"),
      })
    : error
