import type { Metrics } from "../services/metrics.ts"

/** Measures nothing. */
export const fakeMetrics = (): Metrics => ({
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {}, add: () => {} }),
  histogram: () => ({ observe: () => {} }),
})
