import { type ApiError, apiError, type ErrorCode } from "../errors.ts"
import type { Strings } from "../json.ts"
import type { RateState, Refusal } from "../ports/billing.ts"

/** As OpenAI writes it: `120ms`, `1s`, `6m0s`. */
export const formatReset = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** The headers of every keyed response; all are of the rolling minute. */
export const rateHeaders = (rate: RateState): Strings => ({
  "x-ratelimit-limit-requests": String(rate.limit),
  "x-ratelimit-remaining-requests": String(rate.remaining),
  "x-ratelimit-reset-requests": formatReset(rate.resetMs),
})

const answers: Record<Refusal["reason"], readonly [ErrorCode, string]> = {
  rpm: ["rate_limit_error", "This key's requests per minute are used up."],
  rpd: [
    "rate_limit_error",
    "This key's requests of today are used up; they are counted anew at 00:00 UTC.",
  ],
  concurrency: ["concurrency_exceeded", "This key has as many requests in flight as it may have."],
  monthly_cap: ["insufficient_quota", "This call could go over the key's monthly cap."],
  balance: ["insufficient_quota", "The balance does not cover what this call may cost at most."],
}

export const refusalError = (refusal: Refusal): ApiError => {
  const [code, message] = answers[refusal.reason]
  return apiError(code, message, {
    retryAfterMs: refusal.retryAfterMs,
    headers: rateHeaders(refusal.rate),
  })
}
