import type { ApiError, ErrorCode } from "../../../core/index.ts"

const firstMs = 250
const longestMs = 30_000

/** Somebody else's load, or a start: it ends by itself. A line waits as long as its batch has time. */
const transient: ReadonlySet<ErrorCode> = new Set([
  "backend_busy",
  "model_loading",
  "server_starting",
  "rate_limit_error",
  "concurrency_exceeded",
])

/** The engine or the database may recover: tried `maxTries` times. */
const uncertain: ReadonlySet<ErrorCode> = new Set([
  "backend_error",
  "backend_timeout",
  "internal_error",
])
const maxTries = 4

/** How long a line waits before it runs again after its nth try: exponential, with jitter of 25 %. Undefined: it has failed. */
export const retryDelayMs = (
  { code, retryAfterMs = 0 }: ApiError,
  tries: number,
  random: () => number,
): number | undefined => {
  if (!transient.has(code) && !(uncertain.has(code) && tries < maxTries)) return undefined
  const backoffMs = Math.max(firstMs * 2 ** Math.min(tries - 1, 20), retryAfterMs)
  return Math.round(Math.min(backoffMs, longestMs) * (0.75 + random() / 2))
}

/** How long a line waits before it checks for the nth time, from 0 on, whether money that others hold was given back. */
export const moneyDelayMs = (checks: number): number => Math.min(1_000 * 2 ** checks, longestMs)
