import { apiError } from "../../../core/errors.ts"
import { failure, type UpstreamFailure } from "./failure.ts"

const maxErrorBytes = 65_536
const maxShown = 300

/** Reads at most `maxBytes`; `undefined` where there is more. */
export const readUpTo = async (
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | undefined> => {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > maxBytes) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

type Fields = Readonly<Record<string, unknown>>
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}

/** The text of an error in any of the forms that servers have: OpenAI's, FastAPI's, TGI's. */
export const errorText = (json: unknown): string => {
  const { error, message, detail, object } = fieldsOf(json)
  const text =
    fieldsOf(error).message ?? (typeof error === "string" ? error : undefined) ?? message ?? detail
  if (typeof text === "string") return text
  return text === undefined && object === undefined ? "" : JSON.stringify(text ?? json)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Without control characters, the key and what is too long. */
const shown = (text: string, key: string): string => {
  const plain = (key === "" ? text : text.replaceAll(key, "***")).replace(/\p{C}+/gu, " ").trim()
  return plain.length > maxShown ? `${plain.slice(0, maxShown)}...` : plain
}

/** Seconds or a date, as milliseconds; at most a minute. */
export const retryAfterOf = (headers: Fields, nowMs = Date.parse(String(headers.date))): number => {
  const text = String(headers["retry-after"] ?? "")
  const ms = Number(headers["retry-after-ms"])
  const found = ms > 0 ? ms : /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs
  return Number.isFinite(found) && found > 0 ? Math.min(found, 60_000) : 1_000
}

const aboutLength =
  /context.?(length|window|size)|maximum.*(length|tokens)|too (long|large)|max_tokens|must have less than \d+ tokens/i

/** What servers call a prompt, or a picture, that they refuse for what it shows. */
const policyCodes: ReadonlySet<string> = new Set([
  "content_policy_violation",
  "moderation_blocked",
  "content_filter",
])

/** Statuses that say that the request is wrong, not the server. */
const refusals: ReadonlySet<number> = new Set([400, 413, 415, 422])

/**
 * The failure that a status other than 200 means. Of a request that is wrong the client sees what
 * the server says.
 */
export const statusFailure = async (
  status: number,
  headers: Fields,
  body: AsyncIterable<Uint8Array>,
  key: string,
): Promise<UpstreamFailure> => {
  if (status >= 300 && status < 400)
    return failure("misplaced", `it redirects (${status}), which is not followed: correct the url`)
  const bytes = await readUpTo(body, maxErrorBytes).catch(() => undefined)
  const json = parsed(bytes?.toString() ?? "")
  const said = shown(errorText(json), key)
  const text = said === "" ? `status ${status}` : `status ${status}: ${said}`
  if (refusals.has(status)) {
    const { param, code: named } = fieldsOf(fieldsOf(json).error)
    const code = policyCodes.has(String(named))
      ? "content_policy_violation"
      : aboutLength.test(said)
        ? "context_length_exceeded"
        : "invalid_request_error"
    const message = `The model's server refused the request${said === "" ? "" : `: ${said}`}`
    const at = typeof param === "string" ? { param: param.slice(0, 100) } : {}
    return failure("refused", text, { refusal: apiError(code, message, at) })
  }
  if (status === 401 || status === 403)
    return failure("unauthorized", `it refuses the key: correct key (${text})`)
  if (status === 404 || status === 405)
    return failure("misplaced", `it has no such route or model: correct url or model (${text})`)
  if (status === 429) return failure("busy", text, { retryAfterMs: retryAfterOf(headers) })
  if (status === 503 && headers["retry-after"] !== undefined)
    return failure("unavailable", text, { retryAfterMs: retryAfterOf(headers) })
  return failure(status === 408 || status === 504 ? "slow" : "unavailable", text)
}
