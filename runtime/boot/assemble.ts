import { dirname, join } from "node:path"
import { Effect, Result } from "effect"
import { PluginError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { PluginInstance } from "../../core/plugin.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Backend } from "../../core/ports/model.ts"
import type { JobHandler } from "../../core/ports/queue.ts"
import type { Log } from "../../core/services/log.ts"
import { provide, resolve, resolveAll, type Token, Tokens } from "../../core/tokens.ts"
import { pricesEndpoint } from "../admin/prices-endpoint.ts"
import { serverEndpoint } from "../admin/server-endpoint.ts"
import { decodePart } from "../config/decode.ts"
import type { LoadedConfig } from "../config/load.ts"
import type { Problem } from "../config/problems.ts"
import { lockFileName, openSourceLock } from "../services/model-files/store/source-lock.ts"
import { version } from "../version.ts"
import { orderPlugins } from "./dependency-order.ts"
import { type Kernel, kernelTokens, makeKernel, type Purpose } from "./kernel.ts"
import { loadPlugins, type NamedPlugin } from "./load-plugins.ts"
import { withOptions } from "./model-options.ts"
import { checkModels, configuredModels, originOf, type PlacedModel, toEntry } from "./models.ts"
import { type Offered, withOffers } from "./offered-models.ts"
import { type MissingProvider, withFixes } from "./suggest-plugins.ts"

/** A plugin of the config file, with the state that it has in this deployment. */
export interface AssembledPlugin extends NamedPlugin {
  /** Decoded. */
  readonly settings: unknown
  readonly instance: PluginInstance
}

/** A checked deployment whose plugins are registered. Nothing has started. */
export interface AssembledDeployment extends Kernel {
  readonly config: LoadedConfig
  /** In starting order. */
  readonly order: readonly AssembledPlugin[]
  readonly endpoints: readonly Endpoint[]
  readonly backends: readonly Backend[]
  /** All models, those that plugins bring too. */
  readonly models: readonly PlacedModel[]
}

const decodeSettings = (config: LoadedConfig, plugins: readonly NamedPlugin[]) => {
  const settings = new Map<string, unknown>()
  const problems: Problem[] = []
  for (const { key, plugin } of plugins) {
    const decoded = decodePart(
      plugin.settings,
      config.deployment.plugins[key] ?? {},
      ["plugins", key],
      config.fromEnvironment,
    )
    if (Result.isSuccess(decoded)) settings.set(key, decoded.success)
    else problems.push(...decoded.failure)
  }
  return { settings, problems }
}

const portsOfTheServer = (
  endpoints: readonly Endpoint[],
  jobHandlers: readonly JobHandler<never>[],
  plugins: readonly NamedPlugin[],
): readonly MissingProvider[] => {
  const provided = new Set(
    plugins.flatMap(({ plugin }) => plugin.provides.map((token) => token.name)),
  )
  const missing = (
    who: string | undefined,
    tokens: readonly Token<unknown>[],
  ): readonly MissingProvider[] =>
    tokens
      .filter((token) => who !== undefined && !provided.has(token.name))
      .map((token) => ({
        path: ["plugins"],
        message: `${who} needs '${token.name}' (${token.about}), which no plugin here provides`,
        token,
      }))
  const keyed = endpoints.find((endpoint) => endpoint.access === "key")
  const session = endpoints.find(
    (endpoint) => endpoint.access === "session" || endpoint.access === "admin",
  )
  const [handler] = jobHandlers
  return [
    ...missing(keyed && `the endpoint '${keyed.id}'`, [
      Tokens.identity as Token<unknown>,
      Tokens.billing as Token<unknown>,
    ]),
    ...missing(session && `the endpoint '${session.id}'`, [Tokens.sessions as Token<unknown>]),
    ...missing(handler && `the job '${handler.name}'`, [Tokens.queue as Token<unknown>]),
  ]
}

const twiceRouted = (endpoints: readonly Endpoint[]): readonly Problem[] => {
  const seen = new Map<string, Endpoint>()
  return endpoints.flatMap((endpoint) =>
    [endpoint.path, ...(endpoint.aliases ?? [])].flatMap((path) => {
      const route = `${endpoint.method} ${path.replace(/\{[^}]+\}/g, "{}")}`
      const other = seen.get(route)
      seen.set(route, endpoint)
      return other
        ? [
            {
              path: ["plugins"],
              message: `${route} is served twice, by '${other.id}' and '${endpoint.id}'`,
              fix: "remove one of the two plugins.",
            },
          ]
        : []
    }),
  )
}

const stopOn = (config: LoadedConfig, problems: readonly (Problem | MissingProvider)[]) =>
  problems.length > 0
    ? Effect.flatMap(
        Effect.promise(() => withFixes(problems)),
        (explained) => Effect.fail(config.refuse(explained)),
      )
    : Effect.void

/** The models and adapters that plugins have provided so far. */
export const offersIn = ({ container }: Pick<Kernel, "container">) => ({
  models: resolveAll(container, Tokens.models),
  adapters: resolveAll(container, Tokens.adapters),
})

const bringsModels = ({ plugin }: NamedPlugin): boolean =>
  plugin.provides.some(({ name }) => [Tokens.models.name, Tokens.adapters.name].includes(name))

/** A plugin that fails by a PluginError has judged its settings; any other error is its own fault. */
const refusalBy = ({ key }: NamedPlugin, cause: unknown): Problem => ({
  path: ["plugins", key],
  ...(cause instanceof PluginError
    ? { message: cause.message, fix: "correct its settings." }
    : { message: `the plugin threw: ${String(cause)}`, fix: "correct the plugin." }),
})

/** Creates and registers a plugin. */
const createPlugin = (config: LoadedConfig, kernel: Kernel, named: NamedPlugin, settings: Json) =>
  Effect.try({
    try: () => {
      const before = offersIn(kernel)
      const instance = named.plugin.create(settings)
      instance.register?.(kernel.container)
      const after = offersIn(kernel)
      const offers = {
        models: after.models.slice(before.models.length),
        adapters: after.adapters.slice(before.adapters.length),
      }
      if (offers.models.length + offers.adapters.length > 0 && !bringsModels(named))
        throw new Error("it brings models or adapters, which its `provides` does not say")
      return { created: { ...named, settings, instance } satisfies AssembledPlugin, offers }
    },
    catch: (cause) => config.refuse([refusalBy(named, cause)]),
  })

/**
 * Creates the plugins; first those that bring models, as others look at the catalogue when they
 * register.
 */
const createPlugins = (
  config: LoadedConfig,
  kernel: Kernel,
  sorted: readonly NamedPlugin[],
  settings: ReadonlyMap<string, unknown>,
) =>
  Effect.gen(function* () {
    const plugins = new Map<string, AssembledPlugin>()
    const create = (named: NamedPlugin) =>
      Effect.map(
        createPlugin(config, kernel, named, settings.get(named.key) as Json),
        ({ created, offers }): Offered => {
          plugins.set(named.key, created)
          return { by: named, settings: created.settings, ...offers }
        },
      )
    const offered = yield* Effect.forEach(sorted.filter(bringsModels), create)
    const { values, problems } = withOffers(configuredModels(config), offered)
    const { values: models, problems: wrong } = withOptions(values, sorted, config.fromEnvironment)
    yield* stopOn(config, [...problems, ...wrong])
    const catalogue = resolve(kernel.container, Tokens.catalogue)
    for (const { model } of models) catalogue.add(toEntry(model))
    for (const named of sorted) if (!plugins.has(named.key)) yield* create(named)
    return { order: sorted.map(({ key }) => plugins.get(key)!), models }
  })

/** The server's own endpoints for administrators, where a plugin knows who they are. */
const addAdminEndpoints = (
  { container, metrics, readiness }: Kernel,
  order: readonly AssembledPlugin[],
  models: readonly PlacedModel[],
): void => {
  const knowsAdmins = order.some(({ plugin }) =>
    plugin.provides.some(({ name }) => name === Tokens.sessions.name),
  )
  if (!knowsAdmins) return
  const catalogue = resolve(container, Tokens.catalogue)
  const clock = resolve(container, Tokens.clock)
  const deployment = resolve(container, Tokens.deployment)
  for (const endpoint of [
    serverEndpoint({ readiness: readiness.get, catalogue, metrics, clock, deployment, version }),
    pricesEndpoint({ catalogue, clock, originOf: (name) => originOf(models, name) }),
  ])
    provide(container, Tokens.endpoints, endpoint)
}

/**
 * Checks all that can be checked without I/O by plugins. Fails with a ConfigError that lists all
 * problems.
 */
export const assemble = (config: LoadedConfig, purpose: Purpose, log: Log) =>
  Effect.gen(function* () {
    const loaded = yield* Effect.promise(() =>
      loadPlugins(Object.keys(config.deployment.plugins), config.file),
    )
    const { settings, problems } = decodeSettings(config, loaded.plugins)
    const { order: sorted, problems: wiring } = orderPlugins(loaded.plugins, kernelTokens)
    // ports of a plugin that failed to load would be reported as missing, too
    yield* stopOn(config, [
      ...loaded.problems,
      ...problems,
      ...(loaded.problems.length > 0 ? [] : wiring),
    ])
    const lock = yield* Effect.try({
      try: () => openSourceLock(join(dirname(config.file), lockFileName)),
      catch: (cause) => cause as Error,
    })
    const kernel: Kernel = yield* makeKernel(config.deployment, purpose, log, lock)
    const { order, models } = yield* createPlugins(config, kernel, sorted, settings)
    addAdminEndpoints(kernel, order, models)
    const endpoints = resolveAll(kernel.container, Tokens.endpoints)
    const backends = resolveAll(kernel.container, Tokens.backends)
    const jobHandlers = resolveAll(kernel.container, Tokens.jobHandlers)
    yield* stopOn(config, [
      ...checkModels(models, backends),
      ...portsOfTheServer(endpoints, jobHandlers, order),
      ...twiceRouted(endpoints),
    ])
    return {
      ...kernel,
      config,
      order,
      endpoints,
      backends,
      models,
    } satisfies AssembledDeployment as AssembledDeployment
  })
