import { setTimeout as sleep } from "node:timers/promises"
import { SourceFailed } from "../failure.ts"

export interface RetryOptions {
  readonly backoffMs: number
  readonly signal: AbortSignal
  /** Grows with progress, which resets the count of failures. */
  readonly progress?: () => number
}

const failuresInARow = 4
const longestPauseMs = 15_000

const pauseMs = (failure: SourceFailed, failures: number, backoffMs: number): number => {
  const doubled = Math.min(backoffMs * 2 ** (failures - 1), longestPauseMs)
  // jitter, so that replicas that lost the same server don't come back together
  return failure.retryAfterMs ?? doubled * (0.75 + Math.random() / 2)
}

/**
 * Retries failures that allow it, with exponential backoff, until four in a row brought no
 * progress.
 */
export const withRetries = async <A>(
  attempt: () => Promise<A>,
  options: RetryOptions,
): Promise<A> => {
  let failures = 0
  let seen = options.progress?.() ?? 0
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const now = options.progress?.() ?? 0
      failures = now > seen ? 1 : failures + 1
      seen = now
      if (
        options.signal.aborted ||
        !(error instanceof SourceFailed) ||
        !error.retry ||
        failures >= failuresInARow
      )
        throw error
      await sleep(pauseMs(error, failures, options.backoffMs), undefined, {
        signal: options.signal,
      })
    }
  }
}
