import { collectDefaultMetrics, Registry } from "prom-client"
import type { Strings } from "../../core/json.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import { makeCounter, makeGauge, makeHistogram } from "./series.ts"

export interface MetricValue {
  readonly labels: Strings
  readonly value: number
}

export interface ExposedMetrics extends Metrics {
  /** The Prometheus text format. */
  expose(): Promise<string>
  /**
   * The series of counters and gauges by their names; a metric that nobody has made is left out.
   * Those of the process are not read: some begin anew with each reading.
   */
  read(names: readonly string[]): Promise<ReadonlyMap<string, readonly MetricValue[]>>
  readonly contentType: string
}

interface Series {
  readonly values: readonly MetricValue[]
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
  const update = () => {
    for (const one of updates) one()
  }
  return {
    counter: (name, help, labelNames = []) =>
      once(name, () => makeCounter({ name, help, labelNames }, registry)),
    gauge: (name, help, labelNames = []) =>
      once(name, () => makeGauge({ name, help, labelNames }, registry)),
    histogram: (name, help, buckets, labelNames = []) =>
      once(name, () => makeHistogram({ name, help, labelNames }, buckets, registry)),
    onRead: (update) => void updates.push(update),
    expose: () => {
      update()
      return registry.metrics()
    },
    read: async (names) => {
      update()
      const known = names.filter((name) => made.has(name))
      const series = await Promise.all(
        known.map((name) => registry.getSingleMetric(name)?.get() as Promise<Series>),
      )
      return new Map(known.map((name, at) => [name, series[at]?.values ?? []]))
    },
    contentType: registry.contentType,
  }
}
