import Koa, { type Middleware } from "koa"
import { apiError } from "../../core/errors.ts"
import type { Log } from "../../core/services/log.ts"
import type { InFlight } from "./connection/in-flight.ts"
import { makeExchange, requestIdOf, type State } from "./exchange.ts"
import type { HttpLimits } from "./limits.ts"
import type { Cors } from "./response/cors.ts"
import { sendError } from "./response/error-reply.ts"
import type { Observer } from "./system/observe.ts"
import type { HttpTimings } from "./timings.ts"

export interface AppDeps {
  readonly log: Log
  readonly limits: HttpLimits
  readonly timings: HttpTimings
  readonly inFlight: InFlight
  readonly observer: Observer
  readonly cors: Cors
  readonly isDraining: () => boolean
  /** The current routes: they are replaced while the server starts. */
  readonly routes: () => Middleware<State>
  readonly unrouted: Middleware<State>
}

/**
 * Gives a request its id and its log line, and counts it as in flight. Whatever is thrown below
 * becomes a 500.
 */
const exchangeOf =
  ({ log, timings, inFlight, observer, cors, isDraining }: AppDeps): Middleware<State> =>
  async (ctx, next) => {
    // response/ writes the replies: it knows about unread bodies, closed connections and streams
    // that have begun
    ctx.respond = false
    const exchange = makeExchange(ctx.req, ctx.res, requestIdOf(ctx.req.headers["x-request-id"]))
    ctx.state.exchange = exchange
    ctx.res.setHeader("X-Request-ID", exchange.requestId)
    ctx.res.setHeader("X-Content-Type-Options", "nosniff")
    cors.open(exchange)
    if (isDraining()) ctx.res.shouldKeepAlive = false
    const finish = observer.watch(exchange)
    inFlight.begin(exchange)
    const closed = new Promise<void>((resolve) =>
      ctx.res.closed ? resolve() : ctx.res.once("close", () => resolve()),
    )
    try {
      await next()
    } catch (cause) {
      log.error("http.handler_threw", "a request failed", {
        request_id: exchange.requestId,
        cause: cause instanceof Error ? cause.stack : String(cause),
      })
      sendError(exchange, apiError("internal_error"), timings.lingerMs)
    }
    await closed
    // not before: a call that was cut is settled after its response is closed
    finish()
    inFlight.end(exchange)
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
const once: ReadonlySet<string> = new Set(["host", "authorization"])

/** The header that came more than once and must not. */
const repeatedHeader = (rawHeaders: readonly string[]): string | undefined => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!once.has(name)) continue
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}

/** Checks a request before its route is known. */
const checkAddress =
  ({ limits, timings }: AppDeps): Middleware<State> =>
  (ctx, next) => {
    const { exchange } = ctx.state
    const { req } = ctx
    const refuse = (error: ReturnType<typeof apiError>) =>
      sendError(exchange, error, timings.lingerMs)
    if ((req.url ?? "").length > limits.maxUrlLength) return refuse(apiError("uri_too_long"))
    if (req.httpVersion === "0.9")
      return refuse(apiError("invalid_http", "HTTP/0.9 is not served."))
    if (req.httpVersion === "1.1" && !req.headers.host)
      return refuse(apiError("invalid_http", "There is no Host header."))
    const repeated = repeatedHeader(req.rawHeaders)
    if (repeated !== undefined)
      return refuse(apiError("invalid_http", `There is more than one ${repeated} header.`))
    if (!isDecodable(ctx.path))
      return refuse(apiError("invalid_http", "The path's percent-encoding is broken."))
    return next()
  }

export const makeApp = (deps: AppDeps): Koa<State> => {
  const app = new Koa<State>()
  app.on("error", (error: unknown) =>
    deps.log.debug("http.connection_broken", "a connection broke", { cause: String(error) }),
  )
  app.use(exchangeOf(deps))
  app.use(checkAddress(deps))
  app.use((ctx, next) => deps.routes()(ctx, next))
  app.use(deps.unrouted)
  return app
}
