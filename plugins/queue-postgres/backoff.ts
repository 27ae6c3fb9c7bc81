const firstMs = 1_000
const longestMs = 300_000

/**
 * Returns the wait after the nth failed attempt: 1 s, 2 s, 4 s ... up to 5 minutes, plus a jitter
 * of up to a quarter, so
 * that jobs that failed together are not retried together.
 */
export const backoffMs = (attempts: number, random: () => number): number =>
  Math.round(Math.min(firstMs * 2 ** (attempts - 1), longestMs) * (1 + random() / 4))
