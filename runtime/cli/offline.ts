import { Effect, type Scope } from "effect"
import type { Billing } from "../../core/ports/billing.ts"
import type { CommandHost } from "../../core/ports/command.ts"
import type { ModelId } from "../../core/services/ids.ts"
import { provide, resolve, type Token, Tokens } from "../../core/tokens.ts"
import { type AssembledDeployment, assemble } from "../boot/assemble.ts"
import { withDependencies } from "../boot/dependency-order.ts"
import { kernelTokens, makeDataDir } from "../boot/kernel.ts"
import type { NamedPlugin } from "../boot/load-plugins.ts"
import { filesOf, openModels } from "../boot/open-models.ts"
import { migratePlugin, startDeployment } from "../boot/start.ts"
import { loadConfig } from "../config/load.ts"
import { makeLog } from "../services/log.ts"
import { mustHaveData, startWanted } from "./with-deployment.ts"

/**
 * Backends with what they need, and the endpoints that need nothing else: no database, no accounts,
 * no queue.
 */
const enginePlugins = <P extends NamedPlugin>(order: readonly P[]): readonly P[] => {
  const backends = new Set(withDependencies(order, [Tokens.backends as Token<unknown>]))
  const there = new Set([...kernelTokens, Tokens.billing.name])
  return order.filter((named) => {
    const { needs, provides } = named.plugin
    const fits =
      backends.has(named) ||
      (provides.some(({ name }) => name === Tokens.endpoints.name) &&
        needs.every(({ name, arity }) => arity === "many" || there.has(name)))
    if (fits) for (const { name } of provides) there.add(name)
    return fits
  })
}

const unlimited = { limit: Number.MAX_SAFE_INTEGER, remaining: Number.MAX_SAFE_INTEGER, resetMs: 0 }

/** Admits everything. */
const noBilling: Billing = {
  admit: () => Effect.succeed(unlimited),
  settle: () => Effect.void,
  voidChildren: () => Effect.void,
  balance: () => Effect.succeed({ balanceMicros: 0n, heldMicros: 0n }),
  spentThisMonth: () => Effect.succeed(new Map()),
  adjust: () => Effect.void,
}

const missing = (deployment: AssembledDeployment, models: readonly ModelId[]) =>
  Effect.map(
    Effect.forEach(
      resolve(deployment.container, Tokens.catalogue).entries.filter(({ id }) =>
        models.includes(id),
      ),
      (entry) =>
        Effect.map(
          Effect.forEach(filesOf(entry), ({ sources }) => deployment.modelFiles.find(sources)),
          (found) => (found.every(Boolean) ? [] : [entry.id]),
        ),
    ),
    (ids) => ids.flat(),
  )

const openPulled = (
  deployment: AssembledDeployment,
  models: readonly ModelId[],
): Effect.Effect<void, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const away = yield* missing(deployment, models)
    if (away.length > 0)
      return yield* Effect.fail(
        new Error(
          `The files of ${away.join(", ")} are not on this machine. Fix: rakit models pull ${away.join(" ")} -c ${deployment.config.file}`,
        ),
      )
    const failed = yield* openModels(deployment, { report: () => {}, done: () => {} }, models)
    if (failed.length === 0) return
    const { state } = resolve(deployment.container, Tokens.catalogue)
    const reasons = failed.map((id) => {
      const found = state(id)
      return `  ${id}: ${found.state === "failed" ? found.reason : found.state}`
    })
    return yield* Effect.fail(new Error(`These models can't be opened:\n${reasons.join("\n")}`))
  })

/** Assembles a deployment for a command. `masked` hides what came from the environment. */
const assembleFor = (configFile: string, write: (lines: string) => void) =>
  Effect.gen(function* () {
    const config = yield* Effect.try({
      try: () => loadConfig(configFile, process.env),
      catch: (cause) => cause as Error,
    })
    const masked = Effect.mapError((error: Error) => new Error(config.mask.text(error.message)))
    const destination = { write: (lines: string) => write(config.mask.line(lines)) }
    const log = makeLog({ level: "warn", destination })
    return { masked, log, deployment: yield* assemble(config, "command", log) }
  })

/**
 * Starts the part of a deployment that runs calls on models. Its database and its storage are not
 * touched. Warnings and errors are written as lines of the log, without what came from the
 * environment.
 */
export const openOffline: CommandHost["openOffline"] = (configFile, write) =>
  Effect.gen(function* () {
    const { deployment, masked } = yield* assembleFor(configFile, write)
    const { container, order, endpoints } = deployment
    yield* masked(makeDataDir(resolve(container, Tokens.deployment)))
    yield* masked(startDeployment({ ...deployment, order: enginePlugins(order) }))
    provide(container, Tokens.billing, noBilling)
    return {
      callPath: resolve(container, Tokens.callPath),
      catalogue: resolve(container, Tokens.catalogue),
      endpoints,
      settingsOf: (plugin) => order.find((named) => named.plugin.name === plugin)?.settings,
      openModels: (models) => masked(openPulled(deployment, models)),
    }
  })

/** Starts the database alone, and brings the tables of the plugin up to date. */
export const openDatabase: CommandHost["openDatabase"] = (plugin, configFile, write) =>
  Effect.gen(function* () {
    const { deployment, log, masked } = yield* assembleFor(configFile, write)
    const named = deployment.order.find((one) => one.plugin.name === plugin)
    if (named === undefined)
      return yield* Effect.fail(
        new Error(`${configFile} has no ${plugin}. Fix: name it under plugins.`),
      )
    yield* mustHaveData(deployment)
    yield* masked(startWanted(deployment, [Tokens.database as Token<unknown>]))
    yield* masked(migratePlugin(deployment, named))
    const database = resolve(deployment.container, Tokens.database)
    return { database, log, settings: named.settings }
  })
