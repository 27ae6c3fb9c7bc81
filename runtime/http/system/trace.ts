import { randomBytes } from "node:crypto"
import type { Stage } from "../../../core/call/meter.ts"
import { type ErrorCode, errorRegistry } from "../../../core/errors.ts"
import { rupiahNumber } from "../../../core/money.ts"
import type { TaskName } from "../../../core/ports/model.ts"
import { sumUsage } from "../../../core/usage.ts"
import type { CallRecord, Exchange } from "../exchange.ts"
import type { FinishedRequest } from "./observe.ts"

type Value =
  | { readonly stringValue: string }
  | { readonly intValue: number }
  | { readonly doubleValue: number }

/** A span as OTLP/JSON has it. */
export interface OtlpSpan {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  readonly name: string
  /** 1: internal; 2: server. */
  readonly kind: 1 | 2
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Value }[]
  /** 0: unset, which is how a server's span ends well; 2: error. */
  readonly status: { readonly code: 0 | 2; readonly message?: string }
}

/** Traces a request that has ended. Returns the id of its trace, if it is sampled. */
export type TraceRequest = (finished: FinishedRequest) => string | undefined

export interface TracingOptions {
  readonly sampleRatio: number
  readonly export: (spans: readonly OtlpSpan[]) => void
  /** 0 to 1. */
  readonly random: () => number
  /** Unix ms. */
  readonly nowMs: () => number
}

interface Parent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

/** W3C Trace Context, section 3.2; of later versions as much as version 00 has. */
const traceparent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

export const parentOf = (header: string | readonly string[] | undefined): Parent | undefined => {
  if (typeof header !== "string") return undefined
  const [, version, traceId = "", spanId = "", flags = "", more] = traceparent.exec(header) ?? []
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined))
    return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const otlpValue = (value: string | number): Value => {
  if (typeof value === "string") return { stringValue: value }
  return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
}

const attributesOf = (
  values: Readonly<Record<string, string | number | undefined>>,
): OtlpSpan["attributes"] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: otlpValue(value) }],
  )

const operations: Readonly<Record<TaskName, string>> = {
  chat: "chat",
  embed: "embeddings",
  rerank: "rerank",
  image: "generate_content",
  transcribe: "transcription",
}

/** Whose call it was and what it used: never a prompt, an answer or a key. */
const callAttributes = ({ caller, model, meter, cost }: CallRecord) => {
  const { inputTokens, outputTokens } = sumUsage(Object.values(meter.used()))
  const costMicros = cost?.()
  return {
    "rakit.account": caller?.tenant.account,
    "rakit.cost_idr": costMicros === undefined ? undefined : rupiahNumber(costMicros),
    ...(model && {
      "gen_ai.operation.name": operations[model.task],
      "gen_ai.provider.name": "rakit",
      "gen_ai.request.model": model.id,
      "gen_ai.response.model": model.id,
      "gen_ai.usage.input_tokens": inputTokens,
      "gen_ai.usage.output_tokens": outputTokens,
    }),
  }
}

const requestAttributes = ({ exchange, status, isCut }: FinishedRequest) => ({
  "http.request.method": exchange.req.method,
  "http.route": exchange.route,
  "http.response.status_code": status,
  "error.type": exchange.errorCode ?? (isCut ? "client_closed" : undefined),
  "rakit.request_id": exchange.requestId,
  "rakit.call_id": exchange.callId,
  ...(exchange.call && callAttributes(exchange.call)),
})

/** A refusal is the client's matter, so only a failure of the server is an error of its span. */
const statusOf = ({ exchange, status }: FinishedRequest): OtlpSpan["status"] => {
  const { errorCode: code } = exchange
  const meant = code === undefined ? status : errorRegistry[code as ErrorCode].status
  return meant < 500 ? { code: 0 } : { code: 2, ...(code !== undefined && { message: code }) }
}

/** What a stage is a part of, where that is not the request itself. */
const partOf: Readonly<Record<string, string>> = { tokenize: "plan", images: "plan" }

type Common = Pick<OtlpSpan, "traceId"> & { readonly unixNano: (monotonicMs: number) => string }

const newSpanId = (): string => randomBytes(8).toString("hex")

const stageSpans = (
  { traceId, unixNano }: Common,
  root: string,
  stages: ReadonlyMap<string, Stage>,
): readonly OtlpSpan[] => {
  const ids = new Map([...stages.keys()].map((stage) => [stage, newSpanId()]))
  return [...stages].map(([name, { startMs, endMs }]) => ({
    traceId,
    spanId: ids.get(name)!,
    parentSpanId: ids.get(partOf[name] ?? "") ?? root,
    name,
    kind: 1,
    startTimeUnixNano: unixNano(startMs),
    endTimeUnixNano: unixNano(endMs),
    attributes: [],
    status: { code: 0 },
  }))
}

const nameOf = ({ req, route, endpoint }: Exchange): string =>
  endpoint === "(none)" ? `${req.method}` : `${req.method} ${route}`

/**
 * A span for the request and one for each of its stages, made when it has ended: a request that is
 * not sampled costs nothing. Continues the trace of a client that sends `traceparent`.
 */
export const makeTracing = (options: TracingOptions): TraceRequest => {
  const { sampleRatio, random, nowMs } = options
  return (finished) => {
    const { exchange, startMs, endMs } = finished
    const parent = parentOf(exchange.req.headers.traceparent)
    if (!(parent ? parent.isSampled : random() < sampleRatio)) return undefined
    const traceId = parent?.traceId ?? randomBytes(16).toString("hex")
    const spanId = newSpanId()
    const offsetMs = nowMs() - performance.now()
    const unixNano = (ms: number) => String(BigInt(Math.round((ms + offsetMs) * 1_000)) * 1_000n)
    const request: OtlpSpan = {
      traceId,
      spanId,
      parentSpanId: parent?.spanId,
      name: nameOf(exchange),
      kind: 2,
      startTimeUnixNano: unixNano(startMs),
      endTimeUnixNano: unixNano(endMs),
      attributes: attributesOf(requestAttributes(finished)),
      status: statusOf(finished),
    }
    const stages = exchange.call?.meter.stages() ?? new Map<string, Stage>()
    options.export([request, ...stageSpans({ traceId, unixNano }, spanId, stages)])
    return traceId
  }
}
