import type { Clock } from "../../core/services/clock.ts"

export interface FakeClock extends Clock {
  advance(ms: number): void
}

/** A clock that only moves when it is advanced. */
export const fakeClock = (startMs = Date.UTC(2026, 0, 15, 12)): FakeClock => {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    advance: (ms) => {
      nowMs += ms
    },
  }
}
