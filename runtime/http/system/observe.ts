import { type ErrorCode, errorRegistry } from "../../../core/errors.ts"
import { rupiahNumber } from "../../../core/money.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Metrics } from "../../../core/services/metrics.ts"
import { sumUsage } from "../../../core/usage.ts"
import type { CallRecord, Exchange } from "../exchange.ts"

export interface Observer {
  /**
   * Counts the request as in flight. Returns the function that ends it, to be called when its
   * response is closed and its call is settled.
   */
  watch(exchange: Exchange): () => void
  countStream(change: number): void
}

/** A finished request; times of the monotonic clock. */
export interface FinishedRequest {
  readonly exchange: Exchange
  readonly status: number
  readonly startMs: number
  readonly endMs: number
  /** Its reply is not complete. */
  readonly isCut: boolean
}

/** The client closed the request before it had a reply (nginx's convention). */
const clientGone = 499

const buckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
]

/** Probes and browsers call these often: their lines are logged as debug. */
const quiet: ReadonlySet<string> = new Set(["healthz", "readyz", "metrics", "openapi"])

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

const methodOf = ({ req }: Exchange): string =>
  methods.has(req.method ?? "") ? req.method! : "other"

const statusOfExchange = ({ res, errorCode }: Exchange): number => {
  if (res.headersSent) return res.statusCode
  return errorCode === undefined ? clientGone : errorRegistry[errorCode as ErrorCode].status
}

const hundredths = (ms: number): number => Math.round(ms * 100) / 100

/**
 * Whose call it was, what it used, and how long each stage took. Never a key, only its id. Added one
 * by one: V8 makes a hidden class for each member behind a spread that comes first.
 */
const addCallFields = (
  fields: Record<string, unknown>,
  { caller, model, meter, cost }: CallRecord,
): void => {
  if (caller) {
    fields.account = caller.tenant.account
    fields.mode = caller.tenant.mode
    if (caller.keyId !== undefined) fields.key = caller.keyId
  }
  const usage = meter.used()
  const used = model?.id ?? Object.keys(usage)[0]
  if (used !== undefined) {
    const { inputTokens, outputTokens, cacheReadTokens } = sumUsage(Object.values(usage))
    fields.model = used
    fields.input_tokens = inputTokens
    fields.output_tokens = outputTokens
    fields.cache_read_tokens = cacheReadTokens
  }
  const costMicros = cost?.()
  if (costMicros !== undefined) fields.cost_idr = rupiahNumber(costMicros)
  const stagesMs: Record<string, number> = {}
  for (const [stage, { durationMs }] of meter.stages()) stagesMs[stage] = hundredths(durationMs)
  fields.stages_ms = stagesMs
}

const makeRequestMetrics = (metrics: Metrics) => {
  const requests = metrics.counter(
    "rakit_http_requests_total",
    "Requests by endpoint and status.",
    ["endpoint", "method", "status"],
  )
  const failures = metrics.counter(
    "rakit_request_failure_total",
    "Requests that were refused or failed, by model (empty: none, or none that is here) and error code; client_closed: the client left.",
    ["endpoint", "model_name", "code"],
  )
  const seconds = metrics.histogram(
    "rakit_http_request_duration_seconds",
    "From the headers of a request to the end of its reply.",
    buckets,
    ["endpoint"],
  )
  return ({ exchange, status, startMs, endMs, isCut }: FinishedRequest): void => {
    const { endpoint, errorCode } = exchange
    requests.add(1, { endpoint, method: methodOf(exchange), status: String(status) })
    seconds.observe((endMs - startMs) / 1000, { endpoint })
    const code = errorCode ?? (isCut ? "client_closed" : undefined)
    if (code !== undefined)
      failures.add(1, { endpoint, model_name: exchange.call?.model?.id ?? "", code })
  }
}

const isQuiet = ({ exchange, status }: FinishedRequest): boolean =>
  (quiet.has(exchange.endpoint) || exchange.isAsset) && status < 500

const logLine = (log: Log, finished: FinishedRequest, traceId: string | undefined): void => {
  const { exchange, status, startMs, endMs, isCut } = finished
  const fields: Record<string, unknown> = {
    request_id: exchange.requestId,
    method: methodOf(exchange),
    route: exchange.route,
    status,
    duration_ms: hundredths(endMs - startMs),
  }
  if (exchange.callId !== undefined) fields.call_id = exchange.callId
  if (exchange.errorCode !== undefined) fields.code = exchange.errorCode
  if (isCut && exchange.res.headersSent) fields.cut = true
  if (traceId !== undefined) fields.trace_id = traceId
  if (exchange.call) addCallFields(fields, exchange.call)
  log[isQuiet(finished) ? "debug" : "info"]("request.finished", "request", fields)
}

/**
 * One log line and one count for each request, whole or streamed, when all of it is known. Never a
 * body, a key, a query or a raw path.
 */
export const makeObserver = (
  log: Log,
  metrics: Metrics,
  trace?: (finished: FinishedRequest) => string | undefined,
): Observer => {
  const count = makeRequestMetrics(metrics)
  const inFlight = metrics.gauge("rakit_http_requests_in_flight", "Requests without a whole reply.")
  const streams = metrics.gauge("rakit_http_streams_open", "Open event streams.")
  streams.set(0)
  return {
    watch: (exchange) => {
      const startMs = performance.now()
      let endMs: number | undefined
      inFlight.add(1)
      exchange.onClose(() => {
        endMs = performance.now()
        inFlight.add(-1)
      })
      return () => {
        const finished: FinishedRequest = {
          exchange,
          status: statusOfExchange(exchange),
          startMs,
          endMs: endMs ?? performance.now(),
          isCut: !exchange.res.writableFinished,
        }
        count(finished)
        logLine(log, finished, isQuiet(finished) ? undefined : trace?.(finished))
      }
    },
    countStream: (change) => streams.add(change),
  }
}
