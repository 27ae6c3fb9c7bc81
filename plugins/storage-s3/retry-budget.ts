import type { S3ClientConfig } from "@aws-sdk/client-s3"

type Strategy = Exclude<S3ClientConfig["retryStrategy"], undefined> & { readonly mode?: string }
type StrategyV2 = Extract<Strategy, { acquireInitialRetryToken: unknown }>

const earned = 0.1
const baseMs = 100
const longestMs = 5_000

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** "Full jitter": evenly between nothing and the exponential bound. */
export const pauseMs = (retry: number, random = Math.random()): number =>
  random * Math.min(longestMs, baseMs * 2 ** retry)

export interface RetryBudget {
  /** Takes one retry; false when there is none left. */
  take(): boolean
  /** A request has succeeded. */
  earn(): void
}

/**
 * Bounds the retries of all requests together: a store that fails most of its requests gets at most
 * a tenth more of them, once `size` retries are used up.
 */
export const makeRetryBudget = (size: number): RetryBudget => {
  let left = size
  return {
    take: () => {
      if (left < 1) return false
      left -= 1
      return true
    },
    earn: () => {
      left = Math.min(size, left + earned)
    },
  }
}

/** What is worth another try is for the client to say; how many of them, and when, is said here. */
export const retryStrategy = (attempts: number, budget: RetryBudget): StrategyV2 => {
  const token = (retries: number) => ({
    getRetryCount: () => retries,
    getRetryDelay: () => 0,
    getRetryCost: () => 1,
  })
  return {
    acquireInitialRetryToken: async () => token(0),
    refreshRetryTokenForRetry: async (last, { errorType }) => {
      const retries = last.getRetryCount()
      const isWorthIt = errorType === "TRANSIENT" || errorType === "THROTTLING"
      if (!isWorthIt || retries + 1 >= attempts || !budget.take())
        throw new Error("no more retries")
      await wait(pauseMs(retries))
      return token(retries + 1)
    },
    recordSuccess: () => budget.earn(),
  }
}
