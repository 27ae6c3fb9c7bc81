import type { Strings } from "../json.ts"

/**
 * Prometheus metrics. Names start with `rakit_` and end with the unit; labels have few values
 * (never a key, an account or a request id).
 */
export interface Metrics {
  counter(
    name: string,
    help: string,
    labels?: readonly string[],
  ): { add(n: number, labels?: Strings): void }
  gauge(
    name: string,
    help: string,
    labels?: readonly string[],
  ): { set(n: number, labels?: Strings): void; add(n: number, labels?: Strings): void }
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: readonly string[],
  ): { observe(n: number, labels?: Strings): void }
  /** Called before the metrics are read, for gauges that are looked up then. */
  onRead(update: () => void): void
}
