import type { Metrics } from "../../core/services/metrics.ts"

/** Metrics that record nothing. */
export const fakeMetrics = (): Metrics => ({
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {}, add: () => {} }),
  histogram: () => ({ observe: () => {} }),
  onRead: () => {},
})
