import { Effect, Layer, Redacted, type Scope } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as OtlpExporter from "effect/observability/OtlpExporter"
import type { Json } from "../../core/json.ts"
import type { Log } from "../../core/services/log.ts"
import type { OtelConfig } from "../config/otel-schema.ts"

/**
 * The one file that uses what effect marks as unstable; it is imported only where `otel.endpoint` is
 * set. The exporter batches, tries again, and flushes at the end; a collector that fails is left
 * alone for a minute, and what comes meanwhile is dropped.
 */
export interface TraceExporterOptions {
  readonly config: OtelConfig
  readonly serviceName: string
  readonly serviceVersion: string
  readonly log: Log
  readonly fetch?: typeof fetch
  /** How long closing may wait for the last export. */
  readonly flushMs?: number
}

const spansOfExport = 512
const exportEveryMs = 2_000
/** Spans between two exports; further ones are dropped. */
const mostWaiting = 4_096
const mostExports = 2
const exportTimeoutMs = 10_000
/** The log says that exports fail once in this time. */
const silentMs = 600_000

const urlOf = (endpoint: string): string =>
  endpoint.endsWith("/v1/traces") ? endpoint : `${endpoint.replace(/\/$/, "")}/v1/traces`

/** Bounds exports in number and time, and says once that they fail. */
const guarded = ({ log, config, fetch: send = fetch }: TraceExporterOptions): typeof fetch => {
  let open = 0
  let saidMs = Number.NEGATIVE_INFINITY
  const say = (reason: string) => {
    if (performance.now() - saidMs < silentMs) return
    saidMs = performance.now()
    log.warn("otel.export_failed", "traces could not be exported, and are dropped", {
      endpoint: config.endpoint,
      reason,
    })
  }
  return async (url, init) => {
    if (open >= mostExports) throw new Error("the collector has not answered earlier exports")
    open++
    try {
      const timeout = AbortSignal.timeout(exportTimeoutMs)
      const signal = init?.signal ? AbortSignal.any([init.signal, timeout]) : timeout
      const reply = await send(url, { ...init, signal, redirect: "manual" })
      if (!reply.ok) say(`status ${reply.status}`)
      return reply
    } catch (cause) {
      const { cause: inner } = cause as { readonly cause?: { readonly code?: string } }
      say(inner?.code ?? (cause as Error).message)
      throw cause
    } finally {
      open--
    }
  }
}

const resourceOf = ({ serviceName, serviceVersion }: TraceExporterOptions) => ({
  attributes: [
    { key: "service.name", value: { stringValue: serviceName } },
    { key: "service.version", value: { stringValue: serviceVersion } },
  ],
})

/** Returns the function that takes spans in the form of OTLP/JSON. Closing the Scope flushes them. */
export const openTraceExporter = (
  options: TraceExporterOptions,
): Effect.Effect<(spans: readonly Json[]) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { endpoint, headers } = options.config
    const resource = resourceOf(options)
    const scope = { name: "rakit", version: options.serviceVersion }
    let taken = { sinceMs: 0, spans: 0 }
    const exporter = yield* OtlpExporter.make({
      label: "rakit",
      url: urlOf(endpoint),
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, Redacted.value(value)]),
      ),
      exportInterval: exportEveryMs,
      maxBatchSize: spansOfExport,
      shutdownTimeout: options.flushMs ?? 3_000,
      body: (spans) => {
        const data = { resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }] }
        return [HttpBody.jsonUnsafe(data), Effect.void]
      },
    })
    return (spans: readonly Json[]) => {
      const nowMs = performance.now()
      if (nowMs - taken.sinceMs >= exportEveryMs) taken = { sinceMs: nowMs, spans: 0 }
      if (taken.spans + spans.length > mostWaiting) return
      taken.spans += spans.length
      for (const span of spans) exporter.push(span)
    }
  }).pipe(
    Effect.provide(Layer.mergeAll(FetchHttpClient.layer, OtlpExporter.layerFlusher)),
    Effect.provideService(FetchHttpClient.Fetch, guarded(options)),
  )
