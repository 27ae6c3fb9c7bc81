import { urlOf } from "../../../core/url.ts"
import { isSystemError } from "./system-error.ts"

interface RetryHint {
  /** True if the same request may succeed later. */
  readonly retry?: boolean
  readonly retryAfterMs?: number | undefined
}

/**
 * Why a source could not be used. The message goes into the log and into `ModelFilesMissing`: no
 * secrets.
 */
export class SourceFailed extends Error {
  override readonly name = "SourceFailed"
  readonly retry: boolean
  readonly retryAfterMs: number | undefined
  constructor(message: string, hint: RetryHint = {}) {
    super(message)
    this.retry = hint.retry ?? false
    this.retryAfterMs = hint.retryAfterMs
  }
}

/** The source does not have what is asked for, and will not have it later. */
export class NotThere extends SourceFailed {}

/** What the server sent is broken, or is not what was pinned: nothing of it may be kept. */
export class DamagedContent extends SourceFailed {}

/** The URL without credentials and query, where signed addresses carry secrets. */
export const shownUrl = (url: string): string => {
  const parsed = urlOf(url)
  if (!parsed) return url
  const { protocol, origin, pathname } = parsed
  return protocol === "http:" || protocol === "https:" ? origin + pathname : url
}

const byCode: Readonly<Record<string, (host: string) => string>> = {
  ENOTFOUND: (host) => `the host name ${host} is unknown`,
  EAI_AGAIN: (host) => `the host name ${host} could not be looked up`,
  ECONNREFUSED: (host) => `${host} refused the connection`,
  ECONNRESET: (host) => `${host} broke the connection`,
  UND_ERR_SOCKET: (host) => `${host} broke the connection`,
  UND_ERR_CONNECT_TIMEOUT: (host) => `${host} did not answer`,
  ETIMEDOUT: (host) => `${host} did not answer`,
}
const untrusted = /^(DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY))/
const hopeless = /^(ENOTFOUND|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_INVALID)/

const innermost = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined ? innermost(error.cause) : error

/** Translates what `fetch`, or the body of its reply, threw. */
export const networkFailure = (error: unknown, url: string): SourceFailed => {
  if (error instanceof SourceFailed) return error
  const cause = innermost(error)
  const code = isSystemError(cause) ? cause.code : ""
  const host = urlOf(url)?.host ?? url
  const text =
    byCode[code]?.(host) ?? `${host}: ${cause instanceof Error ? cause.message : String(cause)}`
  const hint = untrusted.test(code)
    ? "; where a proxy signs for others, let NODE_EXTRA_CA_CERTS name the file of its certificate"
    : ""
  return new SourceFailed(text + hint, { retry: !hopeless.test(code) })
}

/** Translates an unexpected HTTP status. */
export const statusFailure = (
  response: Pick<Response, "status" | "headers">,
  url: string,
): SourceFailed => {
  const retry = [408, 425, 429].includes(response.status) || response.status >= 500
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN)
  const retryAfterMs = Number.isFinite(seconds) ? Math.min(seconds, 30) * 1000 : undefined
  const message = `${shownUrl(url)} answered ${response.status}`
  return [404, 410].includes(response.status)
    ? new NotThere(message)
    : new SourceFailed(message, { retry, retryAfterMs })
}
