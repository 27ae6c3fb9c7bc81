import { Effect } from "effect"
import type { DependencyContainer } from "tsyringe"
import {
  type Backend,
  type Clock,
  type Deployment,
  definePlugin,
  type HealthCheck,
  type Log,
  type Metrics,
  PluginError,
  resolve,
  type Token,
  Tokens,
} from "../../core/index.ts"
import { backendWithFaults, checkWithFaults, type Injection, withFaults } from "./inject.ts"
import { makeScript } from "./script.ts"
import { type Port, Settings } from "./settings.ts"

const tokens: Readonly<Record<Exclude<Port, "model" | "health">, Token<object>>> = {
  storage: Tokens.storage,
  queue: Tokens.queue,
  database: Tokens.database,
  mailer: Tokens.mailer,
  webhook: Tokens.webhook,
  billing: Tokens.billing,
  idempotency: Tokens.idempotency,
  identity: Tokens.identity,
  files: Tokens.files,
}

const makeInjection = (
  settings: Settings,
  log: Log,
  metrics: Metrics,
  deployment: Deployment,
): Injection => {
  const counter = metrics.counter(
    "rakit_chaos_faults_total",
    "Faults that the plugin chaos injected.",
    ["port", "operation", "fault"],
  )
  return {
    next: makeScript(settings.faults, settings.seed, () => deployment.hasStarted === true),
    injected: (port, operation, { fault }) => {
      counter.add(1, { port, operation, fault })
      log.warn("chaos.fault_injected", "a fault was injected", { port, operation, fault })
    },
    exit: () => process.kill(process.pid, "SIGKILL"),
  }
}

/**
 * Wraps what other plugins put into the container from now on. There is no other place where all
 * ports pass, whoever provides them.
 */
const decorate = (container: DependencyContainer, injection: Injection): void => {
  const ports = new Map<unknown, Port>(
    Object.entries(tokens).map(([port, { key }]) => [key, port as Port]),
  )
  const register = container.registerInstance.bind(container)
  container.registerInstance = ((key, value) => {
    const port = ports.get(key)
    if (key === Tokens.backends.key)
      return register(key, backendWithFaults(value as Backend, injection) as typeof value)
    if (key === Tokens.healthChecks.key)
      return register(key, checkWithFaults(value as HealthCheck, injection) as typeof value)
    return register(
      key,
      port ? (withFaults(value as object, port, injection) as typeof value) : value,
    )
  }) as typeof register
}

/**
 * Moves the one clock of this process, until the Scope closes: a second one beside it would have
 * calls that the kernel began end by the deadlines of plugins.
 */
const skew = (clock: Clock, skewMs: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { nowMs } = clock
      Object.assign(clock, { nowMs: () => nowMs() + skewMs })
      return nowMs
    }),
    (nowMs) => Effect.sync(() => Object.assign(clock, { nowMs })),
  )

export const plugin = definePlugin<Settings>({
  name: "chaos",
  api: 1,
  about:
    "Injects faults at the ports, by script or probability, for drills and tests. Never needed to serve.",
  settings: Settings,
  needs: [Tokens.log, Tokens.metrics, Tokens.deployment, Tokens.clock],
  provides: [],
  create: (settings) => ({
    register: (container) => {
      // commands beside the server (fsck, backup) see things as they are
      const deployment = resolve(container, Tokens.deployment)
      if (deployment.mode !== "server") return
      const missed = [...Object.values(tokens), Tokens.backends, Tokens.healthChecks].find(
        ({ key }) => container.isRegistered(key),
      )
      if (missed)
        throw new Error(
          `chaos must be the first under 'plugins': '${missed.name}' was provided before it, and would have no faults`,
        )
      const log = resolve(container, Tokens.log).with({ plugin: "chaos" })
      const metrics = resolve(container, Tokens.metrics)
      decorate(container, makeInjection(settings, log, metrics, deployment))
    },
    start: (container) =>
      Effect.gen(function* () {
        const { mode } = resolve(container, Tokens.deployment)
        const { faults, clockSkewMs, iKnow } = settings
        if (mode === "server" && process.env.NODE_ENV === "production" && !iKnow)
          return yield* new PluginError({
            plugin: "chaos",
            message:
              "it breaks calls on purpose, and NODE_ENV is production. Fix: remove it from the config file, or set its iKnow to true for a drill.",
          })
        if (mode === "server" && clockSkewMs !== 0)
          yield* skew(resolve(container, Tokens.clock), clockSkewMs)
        resolve(container, Tokens.log).warn("chaos.on", "faults are injected on purpose", {
          faults: faults.length,
          clock_skew_ms: clockSkewMs,
        })
      }),
  }),
})
