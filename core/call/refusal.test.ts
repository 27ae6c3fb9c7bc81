import { expect, it } from "vitest"
import { errorHeaders, statusOf } from "../errors.ts"
import type { Refusal } from "../ports/billing.ts"
import { formatReset, rateHeaders } from "./rate-headers.ts"
import { refusalError } from "./refusal.ts"

it("writes the reset as OpenAI does", () => {
  expect(
    [0, -5, 0.2, 120, 999, 1000, 1001, 59_000, 59_001, 60_000, 360_000, 361_500].map(formatReset),
  ).toEqual([
    "0ms",
    "0ms",
    "1ms",
    "120ms",
    "999ms",
    "1s",
    "2s",
    "59s",
    "1m0s",
    "1m0s",
    "6m0s",
    "6m2s",
  ])
})

it("each reason has the contract's status and code, its wait, and the rate headers", () => {
  const rate = { limit: 60, remaining: 3, resetMs: 1000 }
  const errors = (["rpm", "rpd", "concurrency", "monthly_cap", "balance"] as const).map((reason) =>
    refusalError({ _tag: "Refusal", reason, rate, retryAfterMs: 2500 } satisfies Refusal),
  )
  expect(errors.map((error) => [statusOf(error), error.code])).toEqual([
    [429, "rate_limit_error"],
    [429, "rate_limit_error"],
    [429, "concurrency_exceeded"],
    [402, "insufficient_quota"],
    [402, "insufficient_quota"],
  ])
  for (const error of errors) expect(error.headers).toEqual(rateHeaders(rate))
  expect(errorHeaders(errors[0]!)).toEqual({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "3",
    "x-ratelimit-reset-requests": "1s",
    "retry-after": "3",
    "retry-after-ms": "2500",
  })
})
