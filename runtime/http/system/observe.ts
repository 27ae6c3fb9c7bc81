import { type ErrorCode, errorRegistry } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Metrics } from "../../../core/services/metrics.ts"
import type { Exchange } from "../exchange.ts"

export interface Observer {
  /** Counts the request now, and logs it when its response is closed. */
  watch(exchange: Exchange): void
  countStream(change: number): void
}

/** The client closed the request before it had a reply (nginx's convention). */
const clientGone = 499

const buckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
]

/** Probes call these often: their lines are logged as debug. */
const quiet: ReadonlySet<string> = new Set(["healthz", "readyz", "metrics"])

/** Only these become label values: a client can send any method. */
const methods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
])

const statusOfExchange = ({ res, errorCode }: Exchange): number => {
  if (res.headersSent) return res.statusCode
  return errorCode === undefined ? clientGone : errorRegistry[errorCode as ErrorCode].status
}

/** One log line and one count for each request. Never a body, a key, a query or a raw path. */
export const makeObserver = (log: Log, metrics: Metrics): Observer => {
  const requests = metrics.counter(
    "rakit_http_requests_total",
    "Requests by endpoint and status.",
    ["endpoint", "method", "status"],
  )
  const seconds = metrics.histogram(
    "rakit_http_request_duration_seconds",
    "From the headers of a request to the end of its reply.",
    buckets,
    ["endpoint"],
  )
  const inFlight = metrics.gauge("rakit_http_requests_in_flight", "Requests without a whole reply.")
  const streams = metrics.gauge("rakit_http_streams_open", "Open event streams.")
  streams.set(0)
  const finish = (exchange: Exchange, startedMs: number) => {
    const { req, res, endpoint } = exchange
    const durationMs = performance.now() - startedMs
    const status = statusOfExchange(exchange)
    const method = methods.has(req.method ?? "") ? req.method! : "other"
    inFlight.add(-1)
    requests.add(1, { endpoint, method, status: String(status) })
    seconds.observe(durationMs / 1000, { endpoint })
    log[quiet.has(endpoint) && status < 500 ? "debug" : "info"]("request.finished", "request", {
      request_id: exchange.requestId,
      method,
      route: exchange.route,
      status,
      duration_ms: Math.round(durationMs * 100) / 100,
      ...(exchange.callId !== undefined && { call_id: exchange.callId }),
      ...(exchange.errorCode !== undefined && { code: exchange.errorCode }),
      ...(res.headersSent && !res.writableFinished && { cut: true }),
    })
  }
  return {
    watch: (exchange) => {
      const startedMs = performance.now()
      inFlight.add(1)
      exchange.res.once("close", () => finish(exchange, startedMs))
    },
    countStream: (change) => streams.add(change),
  }
}
