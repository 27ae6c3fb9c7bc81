/** The only source of time. */
export interface Clock {
  /** Unix ms. */
  nowMs(): number
}

export const systemClock: Clock = { nowMs: () => Date.now() }
