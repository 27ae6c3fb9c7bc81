import { Effect, type Scope } from "effect"
import type { PluginError } from "../../core/errors.ts"
import { resolve, resolveAll, Tokens } from "../../core/tokens.ts"
import type { HttpLimits } from "../http/limits.ts"
import { type HttpServer, type ListenError, makeHttpServer } from "../http/server.ts"
import type { House } from "./assemble.ts"
import { makeDataDir } from "./kernel.ts"
import { openModels, type PullListener } from "./open-models.ts"
import { startHouse } from "./start.ts"

export interface ServeOptions {
  readonly version: string
  readonly limits?: Partial<HttpLimits>
  /** The server listens; nothing else has started. */
  onListening(server: HttpServer): void
  /** All plugins have started; models are being opened. */
  onStarted(server: HttpServer): void
  readonly pulls: PullListener
  /** Every model has been opened or has failed. */
  onModels(failed: readonly string[]): void
}

/**
 * Listens, starts the plugins, opens the models. Answers the server when the plugins have started; models go on loading behind it.
 * Closing the Scope closes everything in reverse order.
 */
export const serveHouse = (house: House, options: ServeOptions): Effect.Effect<HttpServer, PluginError | ListenError | Error, Scope.Scope> =>
  Effect.gen(function* () {
    const { container } = house
    const { server: settings, name } = house.config.house
    yield* makeDataDir(resolve(container, Tokens.deployment))
    const waiting = new Set(house.order.map(({ key }) => key))
    const server = yield* makeHttpServer({
      host: settings.host,
      port: settings.port,
      about: { name, version: options.version },
      callPath: resolve(container, Tokens.callPath),
      catalogue: resolve(container, Tokens.catalogue),
      checks: () => resolveAll(container, Tokens.healthChecks),
      starting: () => [...waiting],
      identity: () => resolve(container, Tokens.identity),
      sessions: () => (container.isRegistered(Tokens.sessions.key, true) ? resolve(container, Tokens.sessions) : undefined),
      trustedProxies: settings.trustedProxies,
      log: resolve(container, Tokens.log),
      metrics: house.metrics,
      ...(options.limits && { limits: options.limits }),
    })
    house.address.baseUrl ??= server.url
    server.publish(house.endpoints)
    options.onListening(server)
    yield* startHouse(house, { onStarted: (key) => waiting.delete(key) })
    server.ready()
    options.onStarted(server)
    yield* Effect.forkScoped(openModels(house, options.pulls).pipe(Effect.map(options.onModels)), { startImmediately: true })
    return server
  })
