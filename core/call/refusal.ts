import { type ApiError, apiError, type ErrorCode } from "../errors.ts"
import type { Refusal } from "../ports/billing.ts"
import { rateHeaders } from "./rate-headers.ts"

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

export const refusalError = ({ reason, retryAfterMs, rate }: Refusal): ApiError =>
  apiError(...answers[reason], { retryAfterMs, headers: rateHeaders(rate) })
