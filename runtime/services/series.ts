import type { MetricType, Registry } from "prom-client"
import type { Strings } from "../../core/json.ts"

/** What `prom-client` writes as one line. */
interface Line {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

export interface Described {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
}

/**
 * The series of a metric, by the values of its labels. `prom-client` would sort, check and join the
 * labels at each of the dozen additions that a request makes; here it only writes the text.
 */
const makeSeries = <One>(
  { name, help, labelNames }: Described,
  kind: string,
  registry: Registry,
  make: (labels: Strings) => One,
  linesOf: (one: One) => readonly Line[],
) => {
  const all = new Map<string, One>()
  const [first, ...others] = labelNames
  const keyOf = (labels: Strings): string => {
    let key = first === undefined ? "" : (labels[first] ?? "")
    for (const label of others) key += `\0${labels[label] ?? ""}`
    return key
  }
  let latest: Strings | undefined
  let ofLatest: One | undefined
  const at = (labels: Strings): One => {
    // a model's requests share their labels, and its metrics are most of what a request counts
    if (labels === latest) return ofLatest!
    ofLatest = oneAt(labels)
    latest = labels
    return ofLatest
  }
  const oneAt = (labels: Strings): One => {
    const key = keyOf(labels)
    let one = all.get(key)
    if (one === undefined) {
      one = make({ ...labels })
      all.set(key, one)
    }
    return one
  }
  // without labels there is one series, shown from the beginning
  if (first === undefined) at({})
  const read = async () => ({
    name,
    help,
    type: kind as unknown as MetricType,
    aggregator: "sum" as const,
    values: [...all.values()].flatMap(linesOf),
  })
  registry.registerMetric({ name, get: read } as unknown as Parameters<
    Registry["registerMetric"]
  >[0])
  return at
}

interface Sum {
  readonly labels: Strings
  value: number
}

const makeSums = (metric: Described, kind: "counter" | "gauge", registry: Registry) =>
  makeSeries<Sum>(
    metric,
    kind,
    registry,
    (labels) => ({ labels, value: 0 }),
    (one) => [one],
  )

export const makeCounter = (metric: Described, registry: Registry) => {
  const at = makeSums(metric, "counter", registry)
  return {
    add: (n: number, labels: Strings = {}) => {
      if (!(n >= 0)) throw new RangeError(`${metric.name} can only grow`)
      at(labels).value += n
    },
  }
}

export const makeGauge = (metric: Described, registry: Registry) => {
  const at = makeSums(metric, "gauge", registry)
  return {
    set: (n: number, labels: Strings = {}) => {
      at(labels).value = n
    },
    add: (n: number, labels: Strings = {}) => {
      at(labels).value += n
    },
  }
}

interface Counts {
  readonly labels: Strings
  /** One for each bucket, and one for what is beyond the last. */
  readonly counts: number[]
  sum: number
}

export const makeHistogram = (
  metric: Described,
  buckets: readonly number[],
  registry: Registry,
) => {
  const linesOf = ({ labels, counts, sum }: Counts): readonly Line[] => {
    let count = 0
    const cumulative = counts.map((own, index) => {
      count += own
      return {
        metricName: `${metric.name}_bucket`,
        labels: { le: buckets[index] ?? "+Inf", ...labels },
        value: count,
      }
    })
    return [
      ...cumulative,
      { metricName: `${metric.name}_sum`, labels, value: sum },
      { metricName: `${metric.name}_count`, labels, value: count },
    ]
  }
  const at = makeSeries<Counts>(
    metric,
    "histogram",
    registry,
    (labels) => ({ labels, counts: Array.from({ length: buckets.length + 1 }, () => 0), sum: 0 }),
    linesOf,
  )
  return {
    observe: (n: number, labels: Strings = {}) => {
      const one = at(labels)
      let bucket = 0
      while (bucket < buckets.length && n > buckets[bucket]!) bucket++
      one.counts[bucket]!++
      one.sum += n
    },
  }
}
