import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client"
import type { Metrics } from "../../core/services/metrics.ts"

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
  const once = <M>(name: string, make: () => M): M =>
    (registry.getSingleMetric(name) as M | undefined) ?? make()
  const registers = [registry]
  const updates: (() => void)[] = []
  return {
    counter: (name, help, labelNames = []) => {
      const counter = once(
        name,
        () => new Counter({ name, help, labelNames: [...labelNames], registers }),
      )
      return { add: (n, labels = {}) => counter.inc(labels, n) }
    },
    gauge: (name, help, labelNames = []) => {
      const gauge = once(
        name,
        () => new Gauge({ name, help, labelNames: [...labelNames], registers }),
      )
      return {
        set: (n, labels = {}) => gauge.set(labels, n),
        add: (n, labels = {}) => gauge.inc(labels, n),
      }
    },
    histogram: (name, help, buckets, labelNames = []) => {
      const histogram = once(
        name,
        () =>
          new Histogram({
            name,
            help,
            buckets: [...buckets],
            labelNames: [...labelNames],
            registers,
          }),
      )
      return { observe: (n, labels = {}) => histogram.observe(labels, n) }
    },
    onRead: (update) => void updates.push(update),
    expose: () => {
      for (const update of updates) update()
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}
