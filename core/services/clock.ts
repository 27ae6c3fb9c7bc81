/** The only source of time. */
export interface Clock {
  /** Unix ms. */
  nowMs(): number
  /** For durations only: finer than a ms, and never goes back. */
  monotonicMs(): number
}

export const systemClock: Clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
