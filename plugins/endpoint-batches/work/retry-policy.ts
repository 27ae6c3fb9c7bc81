import type { ApiError, ErrorCode } from "../../../core/index.ts"

const firstMs = 250
const longestMs = 30_000

/**
 * transient: load of other callers, a start, an outage of the database or a disk; it ends by
 * itself. A line waits as long as its batch has time.
 * uncertain: the engine may recover: tried `maxTries` times.
 * final: the line has failed.
 */
const kinds: Readonly<Record<ErrorCode, "transient" | "uncertain" | "final">> = {
  invalid_json: "final",
  invalid_request_error: "final",
  invalid_http: "final",
  model_not_found: "final",
  unsupported_parameter: "final",
  context_length_exceeded: "final",
  content_policy_violation: "final",
  unsupported_file_type: "final",
  authentication_error: "final",
  insufficient_quota: "final",
  email_not_verified: "final",
  account_suspended: "final",
  read_only_session: "final",
  permission_denied: "final",
  origin_not_allowed: "final",
  not_found: "final",
  method_not_allowed: "final",
  request_timeout: "final",
  conflict: "final",
  precondition_failed: "final",
  payload_too_large: "final",
  storage_quota_exceeded: "final",
  uri_too_long: "final",
  unsupported_media_type: "final",
  range_not_satisfiable: "final",
  text_too_long: "final",
  instruction_with_image: "final",
  // the engine has tried often enough
  schema_not_satisfied: "final",
  rate_limit_error: "transient",
  concurrency_exceeded: "transient",
  backend_busy: "transient",
  headers_too_large: "final",
  internal_error: "uncertain",
  backend_error: "uncertain",
  server_busy: "transient",
  database_unavailable: "transient",
  storage_unavailable: "transient",
  model_loading: "transient",
  server_starting: "transient",
  backend_timeout: "uncertain",
  storage_full: "transient",
}
const maxTries = 4

/**
 * How long a line waits before it runs again after its nth try: exponential, with jitter of 25 %.
 * Undefined: it has failed.
 */
export const retryDelayMs = (
  { code, retryAfterMs = 0 }: ApiError,
  tries: number,
  random: () => number,
): number | undefined => {
  const kind = kinds[code]
  if (kind === "final" || (kind === "uncertain" && tries >= maxTries)) return undefined
  const backoffMs = Math.max(firstMs * 2 ** Math.min(tries - 1, 20), retryAfterMs)
  return Math.round(Math.min(backoffMs, longestMs) * (0.75 + random() / 2))
}

/**
 * How long a line waits before it checks for the nth time, from 0 on, whether money that others
 * hold was given back.
 */
export const moneyDelayMs = (checks: number): number => Math.min(1_000 * 2 ** checks, longestMs)
