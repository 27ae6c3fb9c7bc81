import { Router } from "@koa/router"
import { Effect, Exit, Fiber } from "effect"
import type { Middleware } from "koa"
import { type ApiError, apiError, type PortError } from "../../core/errors.ts"
import type { Strings } from "../../core/json.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Log } from "../../core/services/log.ts"
import { toApiError } from "./errors.ts"
import type { Exchange, State } from "./exchange.ts"
import { type Cors, closeToOthers } from "./response/cors.ts"
import { sendError } from "./response/error-reply.ts"
import { sendText } from "./response/reply.ts"
import { type Addressed, type ServeDeps, serveEndpoint } from "./serve-endpoint.ts"
import { type SystemRoute, wantsPage } from "./system/system-routes.ts"

export interface RouteDeps extends ServeDeps {
  readonly cors: Cors
  readonly log: Log
  readonly system: readonly SystemRoute[]
}

/** `/v1/models/{id}` -> `/v1/models/:id` */
const patternOf = (path: string) => path.replace(/\{([^}]+)\}/g, ":$1")

/** Sorts `/v1/files/search` before `/v1/files/{id}`. */
const bySpecificity = (a: { path: string }, b: { path: string }) =>
  a.path.split("{").length - b.path.split("{").length

type Run = (exchange: Exchange, addressed: Addressed) => Effect.Effect<void, ApiError | PortError>

const noQuery: Strings = {}

const queryOf = (text: string): Strings =>
  text === "" ? noQuery : Object.fromEntries(new URLSearchParams(text))

/** Runs the effect; a client that disconnects interrupts it. */
const exitOf = <A, E>(effect: Effect.Effect<A, E>, exchange: Exchange): Promise<Exit.Exit<A, E>> =>
  new Promise((resolve) => {
    const fiber = Effect.runFork(effect)
    fiber.addObserver(resolve)
    exchange.onAbort(() => void Effect.runFork(Fiber.interrupt(fiber)))
  })

/** What pages of other origins may call: sessions, sign-ins and administration are not for them. */
const isForOthers = ({ access, method }: Pick<Endpoint, "access" | "method">) =>
  access === "key" || (access === "public" && method === "GET")

interface Served {
  readonly name: string
  readonly path: string
  readonly forOthers: boolean
  readonly run: Run
}

const runner =
  (deps: RouteDeps, { name, path, forOthers, run }: Served): Middleware<State> =>
  async (ctx) => {
    const { exchange } = ctx.state
    if (!forOthers) closeToOthers(exchange.res)
    exchange.endpoint = name
    exchange.route = path
    const addressed = {
      params: (ctx as { params?: Record<string, string> }).params ?? {},
      query: queryOf(ctx.querystring),
    }
    const exit = await exitOf(run(exchange, addressed), exchange)
    if (Exit.isSuccess(exit) || exchange.res.destroyed) return
    sendError(exchange, toApiError(exit.cause, exchange, deps.log), deps.timings.lingerMs)
  }

export interface Routes {
  readonly serve: Middleware<State>
  /** The methods that a preflight may allow, of the routes with these patterns. */
  methodsForOthers(patterns: readonly string[]): readonly string[]
}

/** Sends browsers to the route's page, where an endpoint serves it. */
const withPage = (
  { page, run }: SystemRoute,
  endpoints: readonly Endpoint[],
  lingerMs: number,
): SystemRoute["run"] => {
  if (page === undefined || !endpoints.some((endpoint) => endpoint.path === page)) return run
  return (exchange) => {
    exchange.res.appendHeader("vary", "accept")
    if (!wantsPage(exchange.req.headers.accept)) return run(exchange)
    const headers = { location: page, "cache-control": "no-store" }
    return Effect.sync(() => sendText(exchange, { status: 302, headers }, "", lingerMs))
  }
}

/** The routes of `endpoints`, then the system routes: a plugin may take over `/`. */
export const makeRoutes = (endpoints: readonly Endpoint[], deps: RouteDeps): Routes => {
  const router = new Router<State>({ sensitive: true })
  // the router tries one pattern after the other; most calls go to a path without parameters
  const exact = new Map<string, Middleware<State>>()
  const forOthers = new Map<string, string[]>()
  const register = (method: string, served: Served) => {
    const pattern = patternOf(served.path)
    const serve = runner(deps, served)
    router.register(pattern, [method], serve as never)
    if (served.forOthers)
      forOthers.set(pattern, [
        ...(forOthers.get(pattern) ?? []),
        ...(method === "GET" ? ["GET", "HEAD"] : [method]),
      ])
    return serve
  }
  const routes = endpoints.flatMap((endpoint) =>
    [endpoint.path, ...(endpoint.aliases ?? [])].map((path) => ({ endpoint, path })),
  )
  for (const { endpoint, path } of routes.sort(bySpecificity)) {
    const serve = register(endpoint.method, {
      name: endpoint.id,
      path,
      forOthers: isForOthers(endpoint),
      run: (exchange, addressed) => serveEndpoint(endpoint, exchange, addressed, deps),
    })
    if (!path.includes("{")) exact.set(`${endpoint.method} ${path}`, serve)
  }
  for (const route of deps.system) {
    const run = withPage(route, endpoints, deps.timings.lingerMs)
    register("GET", { forOthers: false, ...route, run })
  }
  const others = router.routes() as unknown as Middleware<State>
  return {
    serve: (ctx, next) => (exact.get(`${ctx.method} ${ctx.path}`) ?? others)(ctx, next),
    methodsForOthers: (patterns) => [
      ...new Set(patterns.flatMap((pattern) => forOthers.get(pattern) ?? [])),
    ],
  }
}

interface Layer {
  readonly path: string | RegExp
  readonly methods: readonly string[]
}

const allowOf = (matched: readonly Layer[]) =>
  [...new Set(matched.flatMap((layer) => layer.methods)), "OPTIONS"].join(", ")

/**
 * Handles what no route took: OPTIONS and other methods (405) of a known path, and unknown paths
 * (404).
 */
export const answerUnrouted =
  (
    published: () => boolean,
    routes: () => Routes,
    cors: Cors,
    lingerMs: number,
  ): Middleware<State> =>
  (ctx) => {
    const { exchange } = ctx.state
    const matched = (ctx as { matched?: readonly Layer[] }).matched ?? []
    if (matched.length > 0) {
      const allow = allowOf(matched)
      const methods = routes().methodsForOthers(matched.map(({ path }) => String(path)))
      if (methods.length === 0) closeToOthers(exchange.res)
      if (ctx.method === "OPTIONS") {
        const headers = { allow, ...cors.preflight(exchange, methods) }
        return sendText(exchange, { status: 204, headers }, "", lingerMs)
      }
      return sendError(
        exchange,
        apiError("method_not_allowed", undefined, { headers: { allow } }),
        lingerMs,
      )
    }
    // until the endpoints are published, a missing route is not known to be missing
    if (!published())
      return sendError(
        exchange,
        apiError("server_starting", undefined, { retryAfterMs: 2_000 }),
        lingerMs,
      )
    sendError(
      exchange,
      apiError("not_found", "There is no such route; /openapi.json lists them."),
      lingerMs,
    )
  }
