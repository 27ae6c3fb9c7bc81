/** The only source of time. */
export interface Clock {
  /** Unix ms. */
  nowMs(): number
  /** Monotonic, with sub-millisecond resolution. For durations only. */
  monotonicMs(): number
}

export const systemClock: Clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
