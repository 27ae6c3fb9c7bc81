import type { ApiError, ErrorCode } from "../../../core/index.ts"

const firstMs = 250
const longestMs = 30_000

/** Somebody else's load, or a start: that ends. A line waits as long as its batch has time. */
const passing: ReadonlySet<ErrorCode> = new Set([
  "backend_busy",
  "model_loading",
  "server_starting",
  "rate_limit_error",
  "concurrency_exceeded",
])

/** The engine restarts, or the database: that may end. */
const perhaps: ReadonlySet<ErrorCode> = new Set([
  "backend_error",
  "backend_timeout",
  "internal_error",
])
const maxTries = 4

/** How long a line waits before it runs again after its nth try; undefined: it has failed. */
export const waitMs = (
  { code, retryAfterMs = 0 }: ApiError,
  tries: number,
  random: () => number,
): number | undefined => {
  if (!passing.has(code) && !(perhaps.has(code) && tries < maxTries)) return undefined
  const backoffMs = Math.max(firstMs * 2 ** Math.min(tries - 1, 20), retryAfterMs)
  return Math.round(Math.min(backoffMs, longestMs) * (0.75 + random() / 2))
}
