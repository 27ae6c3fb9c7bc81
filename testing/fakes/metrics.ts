import type { Metrics } from "../../core/services/metrics.ts"

/** Measures nothing. */
export const fakeMetrics = (): Metrics => ({
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {}, add: () => {} }),
  histogram: () => ({ observe: () => {} }),
})
