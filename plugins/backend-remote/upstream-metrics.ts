import type { Metrics } from "../../core/services/metrics.ts"
import type { FailureKind } from "./upstream/failure.ts"
import type { Upstream } from "./upstream/upstream.ts"

const labels = ["model_name", "upstream"] as const

/** What happens at the upstreams of one model. */
export interface UpstreamMetrics {
  began(upstream: Upstream, afterMs: number): void
  ended(upstream: Upstream, outcome: FailureKind | "ok" | "cancelled"): void
  retried(upstream: Upstream): void
  ejected(upstream: Upstream): void
  corrected(upstream: Upstream): void
  fellBack(to: string): void
  /** Gauges of these are read with the metrics. */
  watch(upstreams: readonly Upstream[]): void
}

const firstByteBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

/** Returns the metrics of a model, by its id; made once for the deployment. */
export const makeUpstreamMetrics = (metrics: Metrics): ((model: string) => UpstreamMetrics) => {
  const requests = metrics.counter(
    "rakit_upstream_requests_total",
    "Attempts at upstreams of remote models, by outcome: ok, cancelled, or the kind of failure.",
    [...labels, "outcome"],
  )
  const retries = metrics.counter(
    "rakit_upstream_retries_total",
    "Attempts after a first one that failed, by the upstream that got them.",
    labels,
  )
  const ejections = metrics.counter(
    "rakit_upstream_ejections_total",
    "How often an upstream was taken out for failures in a row.",
    labels,
  )
  const corrections = metrics.counter(
    "rakit_upstream_usage_corrected_total",
    "Answers whose usage the upstream left out, or gave impossibly; what was counted here is charged.",
    labels,
  )
  const fallbacks = metrics.counter(
    "rakit_upstream_fallbacks_total",
    "Requests that another model served, by that model.",
    ["model_name", "fallback"],
  )
  const firstByte = metrics.histogram(
    "rakit_upstream_first_byte_seconds",
    "From sending a request to an upstream to the first event of its answer.",
    firstByteBuckets,
    labels,
  )
  const outstanding = metrics.gauge(
    "rakit_upstream_outstanding",
    "Requests under way at the upstream.",
    labels,
  )
  const up = metrics.gauge(
    "rakit_upstream_up",
    "1: the upstream gets requests; 0: it is ejected, or its health check fails.",
    labels,
  )
  const watched: (readonly [string, Upstream])[] = []
  metrics.onRead(() => {
    for (const [model_name, upstream] of watched) {
      const of = { model_name, upstream: upstream.name }
      outstanding.set(upstream.outstanding, of)
      up.set(upstream.isEjected() ? 0 : 1, of)
    }
  })
  return (model_name) => {
    const of = ({ name }: Upstream) => ({ model_name, upstream: name })
    return {
      began: (upstream, afterMs) => firstByte.observe(afterMs / 1_000, of(upstream)),
      ended: (upstream, outcome) => requests.add(1, { ...of(upstream), outcome }),
      retried: (upstream) => retries.add(1, of(upstream)),
      ejected: (upstream) => ejections.add(1, of(upstream)),
      corrected: (upstream) => corrections.add(1, of(upstream)),
      fellBack: (fallback) => fallbacks.add(1, { model_name, fallback }),
      watch: (upstreams) => {
        for (const upstream of upstreams) watched.push([model_name, upstream])
      },
    }
  }
}
