import { isUtf8 } from "node:buffer"
import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"

/** Smaller bodies can't hold more values than `maxValues`. */
const scanAboveBytes = 1_000_000
const maxValues = 1_000_000

const quote = 0x22
const backslash = 0x5c

const closingQuote = (bytes: Uint8Array, from: number): number => {
  let at = bytes.indexOf(quote, from)
  while (at >= 0) {
    let slashes = 0
    while (bytes[at - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return at
    at = bytes.indexOf(quote, at + 1)
  }
  return bytes.length
}

/** Counts `{`, `[` and `,` outside of strings. 50 MB of `[[[[` would become gigabytes of arrays. */
const hasTooManyValues = (bytes: Uint8Array): boolean => {
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = closingQuote(bytes, at + 1)
    else if ((byte === 0x7b || byte === 0x5b || byte === 0x2c) && ++values > maxValues) return true
  }
  return false
}

/** Decodes UTF-8 without its byte-order mark. */
const textOf = (bytes: Uint8Array): string => {
  const from = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, bytes.length - from).toString()
}

/** The JSON value of a body in UTF-8; one byte-order mark is dropped. */
export const parseJson = (bytes: Uint8Array): Effect.Effect<Json, ApiError> =>
  Effect.suspend(() => {
    if (bytes.length === 0)
      return Effect.fail(apiError("invalid_json", "The body is empty; a JSON object is expected."))
    if (bytes.length > scanAboveBytes && hasTooManyValues(bytes))
      return Effect.fail(
        apiError("invalid_request_error", `The body has more than ${maxValues} values.`),
      )
    // a fatal TextDecoder takes several times as long
    if (!isUtf8(bytes)) return Effect.fail(apiError("invalid_json", "The body is not valid UTF-8."))
    try {
      return Effect.succeed(JSON.parse(textOf(bytes)) as Json)
    } catch {
      // V8's message quotes the body, which must not reach a log
      return Effect.fail(apiError("invalid_json"))
    }
  })

const jsonType = /^(application\/json|[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+\+json)$/
const charset = /;\s*charset\s*=\s*"?([^\s;"]+)"?/

/** JSON endpoints take `application/json`, `anything/...+json` or no type at all, in UTF-8. */
export const requireJsonType = (contentType: string | undefined): Effect.Effect<void, ApiError> => {
  if (contentType === undefined || contentType === "") return Effect.void
  const lower = contentType.toLowerCase()
  const type = lower.split(";", 1)[0]!.trim()
  const coding = charset.exec(lower)?.[1] ?? "utf-8"
  if (jsonType.test(type) && (coding === "utf-8" || coding === "utf8" || coding === "us-ascii"))
    return Effect.void
  return Effect.fail(
    apiError("unsupported_media_type", "The body must be application/json in UTF-8."),
  )
}
