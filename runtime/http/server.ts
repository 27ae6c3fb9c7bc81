/**
 * The HTTP server of a deployment: a handler on Node's server. The steps of a request, each with the
 * errors that it may return:
 *
 *  1. Node's parser                       400 invalid_http, 408 request_timeout, 431 headers_too_large      connection/client-errors.ts
 *  2. request id, access line, in flight  (X-Request-ID and, for listed origins, CORS are on every reply)   app.ts, system/observe.ts, response/cors.ts
 *  3. address                             414 uri_too_long, 400 invalid_http                                app.ts
 *  4. route, then method                  404 not_found, 405 method_not_allowed                             routes.ts
 *  5. started?                            503 server_starting (public GETs are served before)               serve-endpoint.ts
 *  6. authentication, origin              401 authentication_error, 403                                     request/authenticate.ts
 *  7. body: length, type, encoding,       413 payload_too_large, 415 unsupported_media_type,                request/body.ts, request/json.ts
 *     memory, length as it arrives, JSON  429 backend_busy, 408 request_timeout, 400 invalid_json
 *  8. the call path                       scopes, decode, plan, admit, run, settle                          core/call.ts
 *  9. reply                               JSON, bytes or events                                             response/reply.ts, response/sse.ts
 *
 * A client that disconnects interrupts steps 8 and 9 (one that only sends no more does not: see
 * connection/half-closed.ts); so does the end of a drain. In every case the call is settled before
 * the request counts as done.
 */
import type { RequestListener, Server } from "node:http"
import { Effect, type Scope } from "effect"
import type { CallPath } from "../../core/call/contract.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { HealthCheck } from "../../core/ports/health.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Log } from "../../core/services/log.ts"
import type { ExposedMetrics } from "../services/metrics.ts"
import { makeApp } from "./app.ts"
import { makeAddressOf } from "./connection/client-address.ts"
import { answerClientErrors } from "./connection/client-errors.ts"
import { makeDrainer } from "./connection/drain.ts"
import { expectsContinue } from "./connection/expect-continue.ts"
import { serveHalfClosed } from "./connection/half-closed.ts"
import { type InFlight, makeInFlight } from "./connection/in-flight.ts"
import { ListenError, listen, makeNodeServer, untilPortFree, urlOf } from "./connection/listen.ts"
import { defaultHttpLimits, type HttpLimits } from "./limits.ts"
import { type ApiTitle, describeApi } from "./openapi/document.ts"
import type { Authenticators } from "./request/authenticate.ts"
import { type BodyBudget, makeBodyBudget } from "./request/body-budget.ts"
import { makeQuietReclaim, makeReclaim } from "./request/reclaim.ts"
import { makeTurns } from "./request/turns.ts"
import { makeCors } from "./response/cors.ts"
import { makeRoutes, makeServe, type RouteDeps } from "./routes.ts"
import { makeReadiness, type Readiness } from "./system/health.ts"
import { makeObserver } from "./system/observe.ts"
import { openScrape, type ScrapeSettings, serveMetrics } from "./system/scrape.ts"
import { type ApiDocument, systemRoutes, toApiDocument } from "./system/system-routes.ts"
import type { TraceRequest } from "./system/trace.ts"
import { defaultHttpTimings, type HttpTimings } from "./timings.ts"

export interface HttpServerOptions extends Authenticators {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly about: ApiTitle
  readonly callPath: CallPath
  /** `/readyz` lists the state of its models. */
  readonly catalogue: Catalogue
  /** Run by `/readyz` once the plugins have started. */
  readonly checks: () => readonly HealthCheck[]
  /** The plugins that have not started yet, for `/readyz`. */
  readonly starting: () => readonly string[]
  readonly log: Log
  readonly metrics: ExposedMetrics
  /** Shared with the call path, whose stages have cohorts, too. */
  readonly inFlight?: InFlight
  /** By default everybody reads `/metrics`, on the port of the API. */
  readonly scrape?: ScrapeSettings
  /** Absent: nothing is traced. */
  readonly trace?: TraceRequest | undefined
  readonly limits?: Partial<HttpLimits>
  readonly timings?: Partial<HttpTimings>
  /** Addresses and networks whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Where clients reach the server, if the config says so. */
  readonly publicUrl?: string
  /** Exact origins, or `*`; none by default. */
  readonly corsOrigins?: readonly string[]
}

export interface HttpServer {
  /** `http://127.0.0.1:8080` */
  readonly url: string
  readonly port: number
  /** The number of requests whose reply is not complete or whose call is not settled. */
  readonly inFlight: number
  /** What `/readyz` shows. */
  readonly readiness: Effect.Effect<Readiness>
  /**
   * Replaces the routes. Before the first call an unknown path is 503 `server_starting`, not 404.
   */
  publish(endpoints: readonly Endpoint[]): void
  /**
   * All plugins have started: from now on every endpoint is served. Models may still be loading.
   */
  ready(): void
  /** Lets open requests finish and closes the server: see connection/drain.ts. */
  drain(timeoutMs: number, delayMs?: number): Effect.Effect<void>
}

export { ListenError }

/** Requests with an `Expect` header are handled like all others. */
const handleRequests = (server: Server, handle: RequestListener): void => {
  server.on("request", handle)
  server.on("checkContinue", (req, res) => {
    expectsContinue(res)
    server.emit("request", req, res)
  })
  server.on("checkExpectation", (req, res) => server.emit("request", req, res))
}

/**
 * The routes of the published endpoints, and their API document, which is made when it is first
 * asked for.
 */
const makeRouting = (
  { about, publicUrl }: HttpServerOptions,
  depsOf: (openApi: () => ApiDocument) => RouteDeps,
) => {
  let endpoints: readonly Endpoint[] | undefined
  let document: ApiDocument | undefined
  const deps = depsOf(() => {
    document ??= toApiDocument(describeApi(about, endpoints ?? [], publicUrl))
    return document
  })
  let routes = makeRoutes([], deps)
  return {
    routes: () => routes,
    isPublished: () => endpoints !== undefined,
    publish: (published: readonly Endpoint[]) => {
      endpoints = published
      document = undefined
      routes = makeRoutes(published, deps)
    },
  }
}

/** The budget of bodies, with its metric. */
const makeBudget = (limits: HttpLimits, metrics: ExposedMetrics): BodyBudget => {
  const budget = makeBodyBudget(limits, makeReclaim())
  const bodyBytes = metrics.gauge(
    "rakit_http_body_bytes",
    "Memory that bodies of open requests hold of their budget.",
  )
  metrics.onRead(() => bodyBytes.set(budget.heldBytes()))
  return budget
}

/** Listens at once; closing the Scope closes the server, and aborts what `drain` has not ended. */
export const makeHttpServer = (
  options: HttpServerOptions,
): Effect.Effect<HttpServer, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const limits: HttpLimits = { ...defaultHttpLimits, ...options.limits }
    const timings: HttpTimings = { ...defaultHttpTimings, ...options.timings }
    const { about, log, metrics, inFlight = makeInFlight() } = options
    const { checkTimeoutMs, lingerMs, writeStallMs } = timings
    const server = makeNodeServer(limits, timings)
    const observer = makeObserver(log, metrics, options.trace)
    const drainer = makeDrainer(server, inFlight, timings.settleMs)
    const cors = makeCors(options.corsOrigins ?? [], options.publicUrl)
    const served = makeQuietReclaim(() => inFlight.all().every(({ isWatch }) => isWatch))
    let isReady = false

    const phase = () => (drainer.isDraining ? "draining" : isReady ? "serving" : "starting")
    const readiness = yield* makeReadiness({ ...options, phase, checkTimeoutMs })
    const { scrape = openScrape } = options
    const { port: metricsPort } = scrape
    if (metricsPort !== undefined)
      yield* serveMetrics({ ...scrape, port: metricsPort }, { metrics, log, limits, timings })
    const routing = makeRouting(options, (openApi) => ({
      ...options,
      timings,
      cors,
      system: systemRoutes({ about, readiness, metrics, scrape, openApi, lingerMs, writeStallMs }),
      budget: makeBudget(limits, metrics),
      turns: makeTurns(),
      cohorts: inFlight.cohorts,
      isReady: () => isReady,
      countStream: observer.countStream,
      addressOf: makeAddressOf(options.trustedProxies ?? []),
    }))
    const app = makeApp({
      log,
      limits,
      timings,
      inFlight,
      observer,
      cors,
      drainer,
      served,
      route: makeServe(routing.isPublished, routing.routes, { cors, timings }),
    })
    handleRequests(server, app)
    answerClientErrors(server, inFlight, log, lingerMs)
    serveHalfClosed(server, inFlight, timings.halfClosedCheckMs)
    yield* untilPortFree(options.host, options.port, timings, log)
    const address = yield* Effect.acquireRelease(listen(server, options.host, options.port), () =>
      drainer.drain(0),
    )
    server.on("error", (error) =>
      log.error("http.socket_failed", "the server's socket failed", { cause: String(error) }),
    )
    return {
      url: urlOf(address, options.host),
      port: address.port,
      get inFlight() {
        return inFlight.size
      },
      readiness,
      publish: routing.publish,
      ready: () => {
        isReady = true
        served()
      },
      drain: drainer.drain,
    }
  })
