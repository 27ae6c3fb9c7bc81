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

/** The one registry: every error that a client can see. Docs, `/openapi.json` and code are kept equal by a test. */
export const errorRegistry = {
  invalid_json: {
    status: 400,
    type: "invalid_request_error",
    about: "The body is not valid JSON.",
  },
  invalid_request_error: {
    status: 400,
    type: "invalid_request_error",
    about: "A field is missing, or has a wrong type or value; `param` names it.",
  },
  invalid_http: {
    status: 400,
    type: "invalid_request_error",
    about: "The request is not valid HTTP.",
  },
  model_not_found: {
    status: 400,
    type: "invalid_request_error",
    about: "The model does not exist or does not fit this endpoint.",
  },
  unsupported_parameter: {
    status: 400,
    type: "invalid_request_error",
    about: "The field is valid, but this deployment can't do it.",
  },
  context_length_exceeded: {
    status: 400,
    type: "invalid_request_error",
    about: "The prompt is longer than the model's context window.",
  },
  content_policy_violation: {
    status: 400,
    type: "invalid_request_error",
    about: "The safety filters refused the request.",
  },
  unsupported_file_type: {
    status: 400,
    type: "invalid_request_error",
    about: "Files of this type are not accepted for this purpose.",
  },
  authentication_error: {
    status: 401,
    type: "authentication_error",
    about: "The API key is missing, invalid or revoked.",
  },
  insufficient_quota: {
    status: 402,
    type: "insufficient_quota",
    about: "The balance or the key's monthly cap does not cover the call.",
  },
  email_not_verified: {
    status: 403,
    type: "permission_error",
    about: "The account's e-mail address is not verified.",
  },
  account_suspended: {
    status: 403,
    type: "permission_error",
    about: "The account was suspended by an administrator.",
  },
  permission_denied: {
    status: 403,
    type: "permission_error",
    about: "The key's scopes or the role don't reach this endpoint.",
  },
  not_found: { status: 404, type: "not_found_error", about: "There is no such route or object." },
  method_not_allowed: {
    status: 405,
    type: "invalid_request_error",
    about: "The route exists, but not for this method; see `Allow`.",
  },
  request_timeout: {
    status: 408,
    type: "invalid_request_error",
    about: "The request did not arrive in time.",
  },
  conflict: {
    status: 409,
    type: "invalid_request_error",
    about: "The object's state, or another request, forbids it.",
  },
  precondition_failed: {
    status: 412,
    type: "invalid_request_error",
    about: "The bytes are not those that `If-Match` or `If-Unmodified-Since` asks for.",
  },
  payload_too_large: {
    status: 413,
    type: "invalid_request_error",
    about: "The body is larger than this endpoint accepts.",
  },
  storage_quota_exceeded: {
    status: 413,
    type: "invalid_request_error",
    about: "The account's storage is full.",
  },
  uri_too_long: { status: 414, type: "invalid_request_error", about: "The address is too long." },
  unsupported_media_type: {
    status: 415,
    type: "invalid_request_error",
    about: "The body's content type is not accepted here.",
  },
  range_not_satisfiable: {
    status: 416,
    type: "invalid_request_error",
    about: "The range lies behind the end of the bytes; see `Content-Range`.",
  },
  text_too_long: {
    status: 422,
    type: "invalid_request_error",
    about: "A text is too long and `truncate` is NONE.",
  },
  instruction_with_image: {
    status: 422,
    type: "invalid_request_error",
    about: "`instruction` can't be combined with image input.",
  },
  rate_limit_error: {
    status: 429,
    type: "rate_limit_error",
    about: "The key's requests per minute or per day are used up.",
  },
  concurrency_exceeded: {
    status: 429,
    type: "rate_limit_error",
    about: "The key has too many requests in flight.",
  },
  backend_busy: {
    status: 429,
    type: "rate_limit_error",
    about: "The model is saturated across customers; try again.",
  },
  headers_too_large: {
    status: 431,
    type: "invalid_request_error",
    about: "The request headers are too large.",
  },
  internal_error: { status: 500, type: "server_error", about: "Something went wrong on our side." },
  backend_error: { status: 500, type: "server_error", about: "The model failed; retry once." },
  model_loading: {
    status: 503,
    type: "server_error",
    about: "The model is still loading; see `Retry-After`.",
  },
  server_starting: {
    status: 503,
    type: "server_error",
    about: "The server is starting or stopping; see `Retry-After`.",
  },
  backend_timeout: { status: 504, type: "server_error", about: "The model was too slow." },
  storage_full: { status: 507, type: "server_error", about: "The server's disk is full." },
} as const satisfies Record<string, { status: number; type: ErrorFamily; about: string }>

export type ErrorCode = keyof typeof errorRegistry

/** An error that reaches the client. `param` is the path of the field, as in `messages[0].content`. */
export class ApiError extends Data.TaggedError("ApiError")<{
  readonly code: ErrorCode
  readonly message: string
  readonly param?: string | undefined
  readonly headers?: Strings | undefined
  /** For 429 and 503: when a retry makes sense. */
  readonly retryAfterMs?: number | undefined
  /** The caller, when the account's state is the reason: the refusal shows the key's rate headers too. */
  readonly barred?: Caller | undefined
}> {}

export const apiError = (
  code: ErrorCode,
  message: string = errorRegistry[code].about,
  more: { param?: string | undefined; retryAfterMs?: number; headers?: Strings } = {},
): ApiError => new ApiError({ code, message, ...more })

export const isApiError = (error: unknown): error is ApiError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ApiError"

export const statusOf = (error: ApiError): number => errorRegistry[error.code].status

/** The body of the error envelope, without its `request_id`. */
export const errorBody = (error: ApiError) => ({
  message: error.message,
  type: errorRegistry[error.code].type,
  code: error.code,
  param: error.param ?? null,
})

export const errorHeaders = (error: ApiError): Strings => {
  const retryable = [429, 503].includes(statusOf(error))
  const waitMs = error.retryAfterMs ?? 1000
  return {
    ...error.headers,
    ...(retryable && {
      "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
      "retry-after-ms": String(Math.max(1, Math.ceil(waitMs))),
    }),
  }
}

/** A port failed (database down, disk error ...). Clients see `internal_error`, or `backend_busy` when its queue was full; the log sees the cause. */
export class PortError extends Data.TaggedError("PortError")<{
  readonly port: string
  readonly message: string
  readonly cause?: unknown
  readonly busy?: true
}> {}

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
