import { collectDefaultMetrics, Registry } from "prom-client"
import type { Metrics } from "../../core/services/metrics.ts"
import { makeCounter, makeGauge, makeHistogram } from "./series.ts"

export interface ExposedMetrics extends Metrics {
  /** The Prometheus text format. */
  expose(): Promise<string>
  readonly contentType: string
}

/**
 * Makes a registry with the process's memory, CPU and event-loop lag. The same name returns the
 * same metric.
 */
export const makeMetrics = (): ExposedMetrics => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const made = new Map<string, unknown>()
  const once = <M>(name: string, make: () => M): M => {
    const metric = (made.get(name) as M | undefined) ?? make()
    made.set(name, metric)
    return metric
  }
  const updates: (() => void)[] = []
  return {
    counter: (name, help, labelNames = []) =>
      once(name, () => makeCounter({ name, help, labelNames }, registry)),
    gauge: (name, help, labelNames = []) =>
      once(name, () => makeGauge({ name, help, labelNames }, registry)),
    histogram: (name, help, buckets, labelNames = []) =>
      once(name, () => makeHistogram({ name, help, labelNames }, buckets, registry)),
    onRead: (update) => void updates.push(update),
    expose: () => {
      for (const update of updates) update()
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}
