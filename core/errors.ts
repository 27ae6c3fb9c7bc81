import { Data } from "effect"
import type { Caller } from "./caller.ts"
import type { Strings } from "./json.ts"

export type ErrorFamily =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "not_found_error"
  | "insufficient_quota"
  | "rate_limit_error"
  | "server_error"

const entry = (type: ErrorFamily) => (status: number, about: string) => ({ status, type, about })
const invalid = entry("invalid_request_error")
const denied = entry("permission_error")
const limited = entry("rate_limit_error")
const server = entry("server_error")

/** The one registry: every error that a reply can carry. docs/errors.md, `/openapi.json` and code are kept equal by tests; what sorts codes is a `Record<ErrorCode, ...>`, so that a new one does not compile until it is decided everywhere. */
export const errorRegistry = {
  invalid_json: invalid(400, "The body is not valid JSON."),
  invalid_request_error: invalid(
    400,
    "A field is missing, or has a wrong type or value; `param` names it.",
  ),
  invalid_http: invalid(400, "The request is not valid HTTP."),
  model_not_found: invalid(400, "The model does not exist or does not fit this endpoint."),
  unsupported_parameter: invalid(400, "The field is valid, but this deployment can't do it."),
  context_length_exceeded: invalid(400, "The prompt is longer than the model's context window."),
  content_policy_violation: invalid(400, "The safety filters refused the request."),
  unsupported_file_type: invalid(400, "Files of this type are not accepted for this purpose."),
  authentication_error: entry("authentication_error")(
    401,
    "The API key is missing, invalid or revoked.",
  ),
  insufficient_quota: entry("insufficient_quota")(
    402,
    "The balance or the key's monthly cap does not cover the call.",
  ),
  email_not_verified: denied(403, "The account's e-mail address is not verified."),
  account_suspended: denied(403, "The account was suspended by an administrator."),
  read_only_session: denied(403, "The session shows the account, and can change nothing."),
  permission_denied: denied(403, "The key's scopes or the role don't reach this endpoint."),
  origin_not_allowed: denied(403, "Pages of this origin may use test keys, not live ones."),
  not_found: entry("not_found_error")(404, "There is no such route or object."),
  method_not_allowed: invalid(405, "The route exists, but not for this method; see `Allow`."),
  request_timeout: invalid(408, "The request did not arrive in time."),
  conflict: invalid(409, "The object's state, or another request, forbids it."),
  precondition_failed: invalid(
    412,
    "The bytes are not those that `If-Match` or `If-Unmodified-Since` asks for.",
  ),
  payload_too_large: invalid(413, "The body is larger than this endpoint or key accepts."),
  storage_quota_exceeded: invalid(413, "The account's storage is full."),
  uri_too_long: invalid(414, "The address is too long."),
  unsupported_media_type: invalid(415, "The body's content type is not accepted here."),
  range_not_satisfiable: invalid(
    416,
    "The range lies behind the end of the bytes; see `Content-Range`.",
  ),
  text_too_long: invalid(422, "A text is too long and `truncate` is NONE."),
  instruction_with_image: invalid(422, "`instruction` can't be combined with image input."),
  schema_not_satisfied: invalid(422, "No answer that satisfies the schema was found; not charged."),
  rate_limit_error: limited(429, "The key's requests per minute or per day are used up."),
  concurrency_exceeded: limited(429, "The key has too many requests in flight."),
  backend_busy: limited(429, "The model is saturated across customers; try again."),
  headers_too_large: invalid(431, "The request headers are too large."),
  internal_error: server(500, "Something went wrong on our side."),
  backend_error: server(500, "The model failed; retry once."),
  server_busy: server(503, "The server has too much work of this kind waiting; try again."),
  database_unavailable: server(503, "The database can't be reached; nothing was held or charged."),
  storage_unavailable: server(503, "The store of files can't be reached; nothing was charged."),
  model_loading: server(503, "The model is still loading; see `Retry-After`."),
  server_starting: server(503, "The server is starting or stopping; see `Retry-After`."),
  backend_timeout: server(504, "The model was too slow."),
  storage_full: server(507, "The server's disk is full."),
}

export type ErrorCode = keyof typeof errorRegistry

/** Codes that stand only in the `errors` of a batch, beside those of replies. */
export const batchErrorRegistry = {
  empty_file: "The input file has no line.",
  too_many_lines: "The input file has more lines than a batch may have.",
  line_too_long: "The line is longer than a line may be.",
  invalid_utf8: "The line is not valid UTF-8.",
  mismatched_endpoint: "The line's `url` is not the batch's endpoint.",
  duplicate_custom_id: "An earlier line has the same `custom_id`.",
  unsupported_endpoint: "This deployment no longer serves the batch's endpoint.",
  more_errors: "There are more errors than are listed.",
}

export type BatchErrorCode = ErrorCode | keyof typeof batchErrorRegistry

/**
 * An error that reaches the client. `param` is the path of the field, as in `messages[0].content`.
 */
export class ApiError extends Data.TaggedError("ApiError")<{
  readonly code: ErrorCode
  readonly message: string
  readonly param?: string | undefined
  readonly headers?: Strings | undefined
  /** Where it is not the status of the code. */
  readonly status?: number | undefined
  /** For 429, 503 and 507, and a 409 that passes by itself: when a retry makes sense. */
  readonly retryAfterMs?: number | undefined
  /**
   * The caller, when the account's state is the reason: the refusal shows the key's rate headers
   * too.
   */
  readonly barred?: Caller | undefined
}> {}

export const apiError = (
  code: ErrorCode,
  message: string = errorRegistry[code].about,
  more: Partial<Pick<ApiError, "param" | "status" | "retryAfterMs" | "headers">> = {},
): ApiError => new ApiError({ code, message, ...more })

export const isApiError = (error: unknown): error is ApiError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ApiError"

export const statusOf = (error: ApiError): number =>
  error.status ?? errorRegistry[error.code].status

/** The body of the error envelope, without its `request_id`. */
export const errorBody = (error: ApiError) => ({
  message: error.message,
  type: errorRegistry[error.code].type,
  code: error.code,
  param: error.param ?? null,
})

export const errorHeaders = (error: ApiError): Strings => {
  const status = statusOf(error)
  const retryable =
    [429, 503, 507].includes(status) || (status === 409 && error.retryAfterMs !== undefined)
  const waitMs = error.retryAfterMs ?? 1000
  return {
    ...error.headers,
    ...(retryable && {
      "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
      "retry-after-ms": String(Math.max(1, Math.ceil(waitMs))),
    }),
  }
}

/**
 * A port failed. Clients see `internal_error`, or what `why` says; the log sees the cause.
 * busy: its queue is full (`server_busy`). unavailable: what is behind it can't be reached
 * (`storage_unavailable` of the port storage, `database_unavailable` of others). full: what is behind it has no space left (`storage_full`).
 * slow: the task took longer than its caller allows; the caller says what that means.
 */
export class PortError extends Data.TaggedError("PortError")<{
  readonly port: string
  readonly message: string
  readonly cause?: unknown
  readonly why?: "busy" | "unavailable" | "full" | "slow"
}> {}

/** How long clients should wait until a database or a disk may be back. */
const outageRetryMs = 5_000

/** What a client sees of a failed port. */
export const portFailure = ({ why, port }: Partial<Pick<PortError, "why" | "port">>): ApiError => {
  const outage = (code: ErrorCode) => apiError(code, undefined, { retryAfterMs: outageRetryMs })
  if (why === "busy") return apiError("server_busy")
  if (why === "unavailable")
    return outage(port === "storage" ? "storage_unavailable" : "database_unavailable")
  if (why === "full") return outage("storage_full")
  return apiError("internal_error")
}

/** An adjustment that the account's balance, less what is held, does not cover. */
export class BalanceTooLow extends Data.TaggedError("BalanceTooLow")<{
  readonly account: string
}> {}

/** A plugin can't start, or its settings are wrong. The message says what to do. */
export class PluginError extends Data.TaggedError("PluginError")<{
  readonly plugin: string
  readonly message: string
  readonly cause?: unknown
}> {}
