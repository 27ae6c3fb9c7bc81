import { Router } from "@koa/router"
import { Effect, Exit, Fiber } from "effect"
import type { Middleware } from "koa"
import { type ApiError, apiError, type PortError } from "../../core/errors.ts"
import type { Strings } from "../../core/json.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Log } from "../../core/services/log.ts"
import { toApiError } from "./errors.ts"
import type { Exchange, State } from "./exchange.ts"
import { sendError } from "./response/error-reply.ts"
import { sendText } from "./response/reply.ts"
import { type Addressed, type ServeDeps, serveEndpoint } from "./serve-endpoint.ts"
import type { SystemRoute } from "./system/system-routes.ts"

export interface RouteDeps extends ServeDeps {
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

const runner =
  (deps: RouteDeps, name: string, path: string, run: Run): Middleware<State> =>
  async (ctx) => {
    const { exchange } = ctx.state
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

/** The routes of `endpoints`, then the system routes: a plugin may take over `/`. */
export const makeRoutes = (endpoints: readonly Endpoint[], deps: RouteDeps): Middleware<State> => {
  const router = new Router<State>({ sensitive: true })
  // the router tries one pattern after the other; most calls go to a path without parameters
  const exact = new Map<string, Middleware<State>>()
  const routes = endpoints.flatMap((endpoint) =>
    [endpoint.path, ...(endpoint.aliases ?? [])].map((path) => ({ endpoint, path })),
  )
  for (const { endpoint, path } of routes.sort(bySpecificity)) {
    const serve = runner(deps, endpoint.id, path, (exchange, addressed) =>
      serveEndpoint(endpoint, exchange, addressed, deps),
    )
    router.register(patternOf(path), [endpoint.method], serve as never)
    if (!path.includes("{")) exact.set(`${endpoint.method} ${path}`, serve)
  }
  for (const { name, path, run } of deps.system)
    router.register(path, ["GET"], runner(deps, name, path, run) as never)
  const others = router.routes() as unknown as Middleware<State>
  return (ctx, next) => (exact.get(`${ctx.method} ${ctx.path}`) ?? others)(ctx, next)
}

const allowOf = (matched: readonly { readonly methods: readonly string[] }[]) =>
  [...new Set(matched.flatMap((layer) => layer.methods)), "OPTIONS"].join(", ")

/**
 * Handles what no route took: OPTIONS and other methods (405) of a known path, and unknown paths
 * (404).
 */
export const answerUnrouted =
  (published: () => boolean, lingerMs: number): Middleware<State> =>
  (ctx) => {
    const { exchange } = ctx.state
    const matched =
      (ctx as { matched?: readonly { readonly methods: readonly string[] }[] }).matched ?? []
    if (matched.length > 0) {
      const allow = allowOf(matched)
      if (ctx.method === "OPTIONS")
        return sendText(exchange, { status: 204, headers: { allow } }, "", lingerMs)
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
