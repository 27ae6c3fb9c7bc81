import { Effect, Exit, Fiber } from "effect"
import { type ApiError, apiError, type PortError } from "../../core/errors.ts"
import type { Strings } from "../../core/json.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Log } from "../../core/services/log.ts"
import { toApiError } from "./errors.ts"
import type { Exchange } from "./exchange.ts"
import { type Cors, closeToOthers } from "./response/cors.ts"
import { sendError } from "./response/error-reply.ts"
import { sendText } from "./response/reply.ts"
import { makeRouter, methodsOf, type Route, type Router, type Serve } from "./router.ts"
import { type Addressed, type ServeDeps, serveEndpoint } from "./serve-endpoint.ts"
import { type SystemRoute, wantsPage } from "./system/system-routes.ts"

export interface RouteDeps extends ServeDeps {
  readonly cors: Cors
  readonly log: Log
  readonly system: readonly SystemRoute[]
}

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
  (deps: RouteDeps, { name, path, forOthers, run }: Served): Route["serve"] =>
  async (exchange, params) => {
    if (!forOthers) closeToOthers(exchange.res)
    exchange.endpoint = name
    exchange.route = path
    const exit = await exitOf(run(exchange, { params, query: queryOf(exchange.query) }), exchange)
    if (Exit.isSuccess(exit) || exchange.res.destroyed) return
    sendError(exchange, toApiError(exit.cause, exchange, deps.log), deps.timings.lingerMs)
  }

export interface Routes extends Router {
  /** The methods that a preflight may allow, of these routes. */
  methodsForOthers(routes: readonly Route[]): readonly string[]
}

/** Sends browsers to the route's page, where an endpoint serves it. */
const withPage = (
  { pages, run }: SystemRoute,
  endpoints: readonly Endpoint[],
  lingerMs: number,
): SystemRoute["run"] => {
  const page = pages?.find((path) => endpoints.some((endpoint) => endpoint.path === path))
  if (page === undefined) return run
  return (exchange) => {
    exchange.res.appendHeader("vary", "accept")
    if (!wantsPage(exchange.req.headers.accept)) return run(exchange)
    const headers = { location: page, "cache-control": "no-store" }
    return Effect.sync(() => sendText(exchange, { status: 302, headers }, "", lingerMs))
  }
}

/** The routes of `endpoints`, then the system routes: a plugin may take over `/`. */
export const makeRoutes = (endpoints: readonly Endpoint[], deps: RouteDeps): Routes => {
  const forOthers = new Set<Route>()
  const routeOf = (method: string, served: Served): Route => {
    const route = { method, path: served.path, serve: runner(deps, served) }
    if (served.forOthers) forOthers.add(route)
    return route
  }
  const ofEndpoints = endpoints
    .flatMap((endpoint) =>
      [endpoint.path, ...(endpoint.aliases ?? [])].map((path) => ({ endpoint, path })),
    )
    .sort(bySpecificity)
    .map(({ endpoint, path }) =>
      routeOf(endpoint.method, {
        name: endpoint.id,
        path,
        forOthers: isForOthers(endpoint),
        run: (exchange, addressed) => serveEndpoint(endpoint, exchange, addressed, deps),
      }),
    )
  const ofSystem = deps.system.map((route) =>
    routeOf("GET", {
      forOthers: false,
      ...route,
      run: withPage(route, endpoints, deps.timings.lingerMs),
    }),
  )
  return {
    ...makeRouter([...ofEndpoints, ...ofSystem]),
    methodsForOthers: (routes) => [
      ...new Set(
        routes
          .filter((route) => forOthers.has(route))
          .flatMap((route) => methodsOf(route).toReversed()),
      ),
    ],
  }
}

const allowOf = (routes: readonly Route[]) =>
  [...new Set(routes.flatMap(methodsOf)), "OPTIONS"].join(", ")

/** For OPTIONS and other methods (405) of a known path. */
const answerOtherMethod = (
  exchange: Exchange,
  found: readonly Route[],
  methods: readonly string[],
  { cors, timings: { lingerMs } }: Pick<RouteDeps, "cors" | "timings">,
): void => {
  const allow = allowOf(found)
  if (methods.length === 0) closeToOthers(exchange.res)
  if (exchange.req.method === "OPTIONS") {
    const headers = { allow, ...cors.preflight(exchange, methods) }
    sendText(exchange, { status: 204, headers }, "", lingerMs)
  } else
    sendError(exchange, apiError("method_not_allowed", undefined, { headers: { allow } }), lingerMs)
}

/** Serves what is published; until then a missing route is not known to be missing. */
export const makeServe =
  (
    published: () => boolean,
    routes: () => Routes,
    deps: Pick<RouteDeps, "cors" | "timings">,
  ): Serve =>
  (exchange) => {
    const { find, at, methodsForOthers } = routes()
    const serve = find(exchange.req.method ?? "", exchange.path)
    if (serve) return serve(exchange)
    const found = at(exchange.path)
    if (found.length > 0) return answerOtherMethod(exchange, found, methodsForOthers(found), deps)
    const error = published()
      ? apiError("not_found", "There is no such route; /openapi.json lists them.")
      : apiError("server_starting", undefined, { retryAfterMs: 2_000 })
    sendError(exchange, error, deps.timings.lingerMs)
  }
