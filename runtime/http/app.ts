import type { RequestListener } from "node:http"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Log } from "../../core/services/log.ts"
import type { Drainer } from "./connection/drain.ts"
import type { InFlight } from "./connection/in-flight.ts"
import { stopping } from "./errors.ts"
import { type Exchange, makeExchange, requestIdOf } from "./exchange.ts"
import type { HttpLimits } from "./limits.ts"
import type { Cors } from "./response/cors.ts"
import { sendError } from "./response/error-reply.ts"
import type { Serve } from "./router.ts"
import type { Observer } from "./system/observe.ts"
import type { HttpTimings } from "./timings.ts"

export interface AppDeps {
  readonly log: Log
  readonly limits: HttpLimits
  readonly timings: HttpTimings
  readonly inFlight: InFlight
  readonly observer: Observer
  readonly cors: Cors
  readonly drainer: Drainer
  /** Called after each call; probes are none. */
  readonly served: () => void
  /** The current routes: they are replaced while the server starts. */
  readonly route: Serve
}

const isDecodable = (path: string) => {
  if (!path.includes("%")) return true
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/**
 * Node keeps the first of several and drops the rest; a proxy before us may keep another, and then
 * two parties see two requests.
 */
const once: readonly string[] = ["host", "authorization"]

/** The header that came more than once and must not. */
const repeatedHeader = (rawHeaders: readonly string[]): string | undefined => {
  const seen: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at]!
    // most are known by their length to be another one
    const name = once.find((one) => one.length === raw.length && one === raw.toLowerCase())
    if (name === undefined) continue
    if (seen.includes(name)) return name
    seen.push(name)
  }
  return undefined
}

/** What is wrong with a request before its route is known. */
const wrongAddress = ({ req, path }: Exchange, limits: HttpLimits): ApiError | undefined => {
  if ((req.url ?? "").length > limits.maxUrlLength) return apiError("uri_too_long")
  if (req.httpVersion === "0.9") return apiError("invalid_http", "HTTP/0.9 is not served.")
  if (req.httpVersion === "1.1" && !req.headers.host)
    return apiError("invalid_http", "There is no Host header.")
  const repeated = repeatedHeader(req.rawHeaders)
  if (repeated !== undefined)
    return apiError("invalid_http", `There is more than one ${repeated} header.`)
  return isDecodable(path)
    ? undefined
    : apiError("invalid_http", "The path's percent-encoding is broken.")
}

/**
 * Gives a request its id and its log line, and counts it as in flight. Whatever is thrown below
 * becomes a 500.
 */
export const makeApp = (deps: AppDeps): RequestListener => {
  const { log, limits, timings, inFlight, observer, cors, drainer, served, route } = deps
  const failed = (exchange: Exchange, cause: unknown) => {
    log.error("http.handler_threw", "a request failed", {
      request_id: exchange.requestId,
      cause: cause instanceof Error ? cause.stack : String(cause),
    })
    sendError(exchange, apiError("internal_error"), timings.lingerMs)
  }
  const serve = async (exchange: Exchange) => {
    const wrong = wrongAddress(exchange, limits) ?? (drainer.isRefusing ? stopping() : undefined)
    try {
      if (wrong) sendError(exchange, wrong, timings.lingerMs)
      else await route(exchange)
    } catch (cause) {
      failed(exchange, cause)
    }
  }
  return (req, res) => {
    const { cohorts } = inFlight
    const exchange = makeExchange(req, res, requestIdOf(req.headers["x-request-id"]), cohorts)
    cors.open(exchange)
    if (drainer.isDraining) res.shouldKeepAlive = false
    const finish = observer.watch(exchange)
    const link = inFlight.begin(exchange)
    // a call that was cut is settled after its response is closed
    let parts = 2
    const finished = () => {
      finish()
      inFlight.end(link)
      if (exchange.call) served()
    }
    const end = () => {
      if (--parts === 0) cohorts.go(finished)
    }
    exchange.onClose(end)
    cohorts.go(() => void serve(exchange).then(end))
  }
}
