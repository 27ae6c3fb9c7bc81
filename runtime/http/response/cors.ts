import type { ServerResponse } from "node:http"
import type { Strings } from "../../../core/json.ts"
import { urlOf } from "../../../core/url.ts"
import type { Exchange } from "../exchange.ts"

const anyOrigin = "*"

const isLoopback = (hostname: string) => /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)

/** Whether the text is an entry of `server.cors.origins`: an origin as browsers send it, or `*`. */
export const isOriginEntry = (text: string): boolean => {
  if (text === anyOrigin) return true
  // `new URL` takes more than a browser ever sends, as `https://*.example.com`
  const isOrigin = /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d+)?$/.test(text)
  const url = isOrigin ? urlOf(text) : undefined
  if (!url) return false
  const { origin, protocol, hostname } = url
  return origin === text && (protocol === "https:" || isLoopback(hostname))
}

/** What a page may read beside the few headers that it always may. */
const exposedHeaders = [
  ...["X-Request-ID", "X-Call-ID", "X-Cost-IDR", "X-Embedding-Space", "Server-Timing"],
  ...["limit", "remaining", "reset"].map((what) => `x-ratelimit-${what}-requests`),
  ...["Retry-After", "retry-after-ms", "Idempotent-Replayed", "ETag", "Content-Disposition"],
  ...["Content-Length", "Content-Range", "Accept-Ranges", "Allow", "WWW-Authenticate"],
].join(", ")

const acceptedHeaders = [
  ...["authorization", "content-type", "idempotency-key", "x-dry-run", "x-request-id"],
  ...["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"],
  // what the official clients add
  ...["user-agent", "openai-organization", "openai-project", "openai-beta", "x-client-name"],
  ...["x-fern-language", "x-fern-sdk-name", "x-fern-sdk-version", "x-fern-runtime"],
  ...["x-fern-runtime-version"],
  ...["arch", "lang", "os", "package-version", "runtime", "runtime-version", "retry-count"].map(
    (what) => `x-stainless-${what}`,
  ),
  ...["timeout", "helper-method", "poll-helper", "custom-poll-interval"].map(
    (what) => `x-stainless-${what}`,
  ),
].join(", ")

/** Chromium keeps a preflight for two hours at most. */
const preflightSeconds = 7_200
const noHeaders: Strings = {}

export interface Cors {
  /**
   * Lets a page of another origin read the reply, where the config allows that origin. Never with
   * credentials: a key is sent by the page's own code, and cookies there are none.
   */
  open(exchange: Exchange): void
  /** The headers of a preflight's reply; none where `open` did not allow the origin. */
  preflight(exchange: Exchange, methods: readonly string[]): Strings
}

/** For routes that pages of other origins never reach: sessions and administration. */
export const closeToOthers = (res: ServerResponse): void => {
  res.removeHeader("Access-Control-Allow-Origin")
  res.removeHeader("Access-Control-Expose-Headers")
}

const hostOf = (origin: string): string | undefined => urlOf(origin)?.host

/** `origins`: exact ones, or `*`; none: off. `publicUrl`: where clients reach the server. */
export const makeCors = (origins: readonly string[], publicUrl = ""): Cors => {
  const listed = new Set(origins.filter((origin) => origin !== anyOrigin))
  const takesAny = origins.includes(anyOrigin)
  // the dashboard sends an Origin, too
  const publicHost = hostOf(publicUrl)
  const isOwn = ({ headers }: Exchange["req"], origin: string) => {
    const host = hostOf(origin) // none of `null`, the origin of sandboxed pages and files
    return (
      headers["sec-fetch-site"] === "same-origin" ||
      (host !== undefined && (host === headers.host || host === publicHost))
    )
  }
  return {
    open: (exchange) => {
      if (origins.length === 0) return
      const { req, res } = exchange
      res.appendHeader("Vary", "Origin")
      const { origin } = req.headers
      if (origin === undefined) return
      const isListed = listed.has(origin)
      if (!isListed && !takesAny) return
      exchange.testKeysOnly = !isListed && !isOwn(req, origin)
      res.setHeader("Access-Control-Allow-Origin", isListed ? origin : anyOrigin)
      res.setHeader("Access-Control-Expose-Headers", exposedHeaders)
    },
    preflight: ({ req, res }, methods) => {
      const isPreflight = req.headers["access-control-request-method"] !== undefined
      if (!isPreflight || !res.hasHeader("Access-Control-Allow-Origin")) return noHeaders
      res.removeHeader("Access-Control-Expose-Headers")
      return {
        "access-control-allow-methods": methods.join(", "),
        "access-control-allow-headers": acceptedHeaders,
        "access-control-max-age": String(preflightSeconds),
      }
    },
  }
}
