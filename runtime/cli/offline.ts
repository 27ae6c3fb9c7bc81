import { Effect, type Scope } from "effect"
import type { ModelId } from "../../core/services/ids.ts"
import type { Log } from "../../core/services/log.ts"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { builtinPlugins } from "../../plugins/index.ts"
import { type AssembledDeployment, assemble } from "../boot/assemble.ts"
import { kernelTokens, makeDataDir } from "../boot/kernel.ts"
import type { NamedPlugin } from "../boot/load-plugins.ts"
import { openModels } from "../boot/open-models.ts"
import { closure } from "../boot/dependency-order.ts"
import { startDeployment } from "../boot/start.ts"
import { loadConfig } from "../config/load.ts"

/** Backends with what they need, and those endpoints that need nothing else: no database, no accounts, no queue. */
export const engineRoom = <P extends NamedPlugin>(order: readonly P[]): readonly P[] => {
  const backends = new Set(closure(order, [Tokens.backends as Token<unknown>]))
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

/** Nobody is billed, and no limit of a key holds. */
const startFreeBilling = ({ container }: AssembledDeployment) =>
  Effect.gen(function* () {
    const { plugin } = yield* Effect.promise(async () => builtinPlugins["billing-free"]!())
    yield* plugin.create({ maxKeys: 1 }).start?.(container) ?? Effect.void
  })

/** The deployment of a config file without all that serves: what is left can run calls on its models. Nothing of its database or its store is touched. */
export const openEngineRoom = (
  configFile: string,
  log: Log,
): Effect.Effect<AssembledDeployment, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const config = yield* Effect.try({
      try: () => loadConfig(configFile, process.env),
      catch: (cause) => cause as Error,
    })
    const deployment = yield* assemble(config, "command", log)
    yield* makeDataDir(resolve(deployment.container, Tokens.deployment))
    yield* startDeployment({ ...deployment, order: engineRoom(deployment.order) })
    yield* startFreeBilling(deployment)
    return deployment
  })

const missing = (deployment: AssembledDeployment, models: readonly ModelId[]) =>
  Effect.map(
    Effect.forEach(
      resolve(deployment.container, Tokens.catalogue).entries.filter(
        ({ id, sources }) => models.includes(id) && sources.length > 0,
      ),
      ({ id, sources }) =>
        Effect.map(deployment.modelFiles.find(sources), (found) => (found ? [] : [id])),
    ),
    (ids) => ids.flat(),
  )

/** Opens models whose files are on this machine; nothing is downloaded on the way. */
export const openPulled = (
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
