import type { RateState } from "../ports/billing.ts"

/** As OpenAI writes it: `120ms`, `1s`, `6m0s`. */
export const formatReset = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** The headers of every keyed response; all are of the rolling minute. */
export const rateHeaders = (rate: RateState): Record<string, string> => ({
  "x-ratelimit-limit-requests": String(rate.limit),
  "x-ratelimit-remaining-requests": String(rate.remaining),
  "x-ratelimit-reset-requests": formatReset(rate.resetMs),
})
