import { Effect, Fiber, Redacted, type Scope } from "effect"
import type { DependencyContainer } from "tsyringe"
import type { PluginError, PortError } from "../../core/errors.ts"
import { resolve, resolveAll, type Token, Tokens } from "../../core/tokens.ts"
import { type HttpServer, type ListenError, makeHttpServer } from "../http/server.ts"
import { makeTracing, type TraceRequest } from "../http/system/trace.ts"
import type { AssembledDeployment } from "./assemble.ts"
import { withDependencies } from "./dependency-order.ts"
import { makeDataDir } from "./kernel.ts"
import { lazy, optional } from "./lazy.ts"
import { openModels, type PullListener } from "./open-models.ts"
import { describeModels } from "./served-models.ts"
import { startDeployment } from "./start.ts"

export interface ServeOptions {
  readonly version: string
  /** The server listens; nothing else has started. */
  onListening(server: HttpServer): void
  /** All plugins have started; models may still be being opened. */
  onStarted(server: HttpServer): void
  readonly pulls: PullListener
  /** Every model has been opened or has failed, and all plugins have started. */
  onModels(failed: readonly string[]): void
}

/** Consumes jobs until the Scope closes. */
const workThroughJobs = (
  container: DependencyContainer,
): Effect.Effect<void, PortError, Scope.Scope> =>
  Effect.suspend(() => {
    const jobHandlers = resolveAll(container, Tokens.jobHandlers)
    return jobHandlers.length === 0
      ? Effect.void
      : Effect.forEach(
          jobHandlers,
          (handler) => resolve(container, Tokens.queue).consume(handler),
          {
            discard: true,
          },
        )
  })

/** Opens the export of traces, whose libraries are loaded only where it is set. */
const openTracing = (
  { container, config }: AssembledDeployment,
  serviceVersion: string,
): Effect.Effect<TraceRequest | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { otel, name } = config.deployment
    if (otel.endpoint === "") return undefined
    const { openTraceExporter } = yield* Effect.promise(
      () => import("../services/trace-exporter.ts"),
    )
    const exportSpans = yield* openTraceExporter({
      config: otel,
      serviceName: otel.serviceName || name,
      serviceVersion,
      log: resolve(container, Tokens.log),
    })
    return makeTracing({
      sampleRatio: otel.sampleRatio,
      export: exportSpans,
      random: Math.random,
      nowMs: resolve(container, Tokens.clock).nowMs,
    })
  })

/**
 * Starts the backends and what they need, then all other plugins, and meanwhile opens the first
 * model: its weights are read while a database starts. More at once would take the processors that
 * the start needs. Returns when the plugins have started, with what opens the other models and
 * returns the ids of all that failed.
 */
const startAndOpen = (
  deployment: AssembledDeployment,
  onStarted: (key: string) => void,
  pulls: PullListener,
) =>
  Effect.gen(function* () {
    const { order, container } = deployment
    const [first, ...others] = resolve(container, Tokens.catalogue).entries.map(({ id }) => id)
    const backends = withDependencies(order, [Tokens.backends as Token<unknown>])
    yield* startDeployment({ ...deployment, order: backends }, { onStarted })
    const opening = yield* Effect.forkScoped(openModels(deployment, pulls, first ? [first] : []), {
      startImmediately: true,
    })
    const rest = order.filter((named) => !backends.includes(named))
    yield* startDeployment({ ...deployment, order: rest }, { onStarted })
    return Effect.map(
      Effect.all([Fiber.join(opening), openModels(deployment, pulls, others)], { concurrency: 2 }),
      (failed) => failed.flat(),
    )
  })

/**
 * Listens, starts the plugins and opens the models. Returns when the plugins have started; models
 * are opened in the background.
 * Closing the Scope closes all of it in reverse order.
 */
export const serveDeployment = (
  deployment: AssembledDeployment,
  options: ServeOptions,
): Effect.Effect<HttpServer, PluginError | ListenError | Error, Scope.Scope> =>
  Effect.gen(function* () {
    const { container } = deployment
    const { server: settings, name, publicUrl } = deployment.config.deployment
    yield* makeDataDir(resolve(container, Tokens.deployment))
    yield* describeModels(deployment)
    const waiting = new Set(deployment.order.map(({ key }) => key))
    const trace = yield* openTracing(deployment, options.version)
    const server = yield* makeHttpServer({
      host: settings.host,
      port: settings.port,
      about: { name, version: options.version },
      callPath: resolve(container, Tokens.callPath),
      catalogue: resolve(container, Tokens.catalogue),
      checks: () => resolveAll(container, Tokens.healthChecks),
      starting: () => [...waiting],
      identity: lazy(container, Tokens.identity),
      sessions: optional(container, Tokens.sessions),
      trustedProxies: settings.trustedProxies,
      corsOrigins: settings.cors.origins,
      publicUrl,
      timings: { pingMs: settings.ssePingMs },
      limits: {
        maxBufferedBytes: settings.bodies.megabytes * 2 ** 20,
        maxBufferedBytesPerAccount: settings.bodies.megabytesPerAccount * 2 ** 20,
      },
      log: resolve(container, Tokens.log),
      metrics: deployment.metrics,
      inFlight: deployment.inFlight,
      scrape: { ...settings.metrics, bearer: Redacted.value(settings.metrics.bearer) },
      trace,
    })
    deployment.state.baseUrl ??= server.url
    deployment.readiness.set(server.readiness)
    const { role = "all" } = resolve(container, Tokens.deployment)
    server.publish(role === "worker" ? [] : deployment.endpoints)
    options.onListening(server)
    const openOthers = yield* startAndOpen(deployment, (key) => waiting.delete(key), options.pulls)
    deployment.state.hasStarted = true
    if (role !== "api") yield* workThroughJobs(container)
    server.ready()
    options.onStarted(server)
    yield* Effect.forkScoped(Effect.map(openOthers, options.onModels), {
      startImmediately: true,
    })
    return server
  })
