import { Effect } from "effect"
import type { Outbound } from "../../core/services/outbound.ts"

/** A kind of media in messages. */
export interface MediaKind {
  /** The types of its data URIs, such as `image/png`. */
  readonly types: RegExp
  /** What a wrong address is answered with. */
  readonly wanted: string
  readonly maxBytes: number
  readonly tooLarge: string
}

const fetchTimeoutMs = 10_000

/**
 * Strict base64 of RFC 4648, section 4: padded, no other characters. Searches for a wrong character,
 * as matching megabytes overflows the stack of the regex engine.
 */
const isBase64 = (text: string): boolean => {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="))
  return text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))
}

/** The bytes of base64, or what is wrong with it. */
export const fromBase64 = (
  base64: string,
  { maxBytes, tooLarge }: Pick<MediaKind, "maxBytes" | "tooLarge">,
): Buffer | string => {
  if ((base64.length / 4) * 3 > maxBytes + 2) return tooLarge
  return isBase64(base64) ? Buffer.from(base64, "base64") : "is not valid base64"
}

/** The bytes of a data URI, or what is wrong with it; which format it is, its first bytes say. */
const fromDataUri = (uri: string, kind: MediaKind): Buffer | string => {
  const comma = uri.slice(0, 256).indexOf(",")
  const [, type = ""] = /^data:([^;,]+)(?:;[^,]*)?;base64$/i.exec(uri.slice(0, comma)) ?? []
  return comma < 0 || !kind.types.test(type) ? kind.wanted : fromBase64(uri.slice(comma + 1), kind)
}

const fetched = (
  outbound: Outbound,
  url: string,
  { maxBytes, tooLarge }: MediaKind,
): Effect.Effect<Buffer | string> =>
  outbound.send({ method: "GET", url, timeoutMs: fetchTimeoutMs, maxBytes }).pipe(
    Effect.map(({ status, body, truncated }) => {
      if (status !== 200)
        return `could not be fetched: the server answered ${status}, and redirects are not followed`
      return truncated ? tooLarge : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    }),
    Effect.catch(({ message }) => Effect.succeed(`could not be fetched: ${message}`)),
  )

export const isAddress = (url: string): boolean => /^https?:/i.test(url.slice(0, 8))

/** The bytes of a data URI, or of an address, which is fetched through the guard; else what is wrong. */
export const mediaBytes = (
  outbound: Outbound,
  url: string,
  kind: MediaKind,
): Effect.Effect<Buffer | string> =>
  isAddress(url) ? fetched(outbound, url, kind) : Effect.succeed(fromDataUri(url, kind))
