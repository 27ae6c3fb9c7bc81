import { Effect, type Scope } from "effect"
import { PluginError } from "../../core/errors.ts"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { type AssembledDeployment, type AssembledPlugin, offersIn } from "./assemble.ts"
import { withDependencies } from "./dependency-order.ts"

/**
 * Runs a plugin's migrations; the database must have started. Returns the names of those that ran.
 */
export const migratePlugin = (
  deployment: AssembledDeployment,
  { plugin }: AssembledPlugin,
): Effect.Effect<readonly string[], PluginError> =>
  plugin.migrations === undefined
    ? Effect.succeed([])
    : resolve(deployment.container, Tokens.database)
        .migrate(plugin.name, plugin.migrations)
        .pipe(
          Effect.mapError(
            (error) =>
              new PluginError({
                plugin: plugin.name,
                message: `its tables can't be brought up to date: ${error.message}`,
                cause: error,
              }),
          ),
        )

const countOffers = (deployment: AssembledDeployment): number => {
  const { models, adapters } = offersIn(deployment)
  return models.length + adapters.length
}

const startOne = (
  deployment: AssembledDeployment,
  named: AssembledPlugin,
): Effect.Effect<void, PluginError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* migratePlugin(deployment, named)
    const before = countOffers(deployment)
    yield* named.instance.start?.(deployment.container) ?? Effect.void
    // the catalogue is made of what `register` brings: these would be missing without a word
    if (countOffers(deployment) > before)
      yield* Effect.fail(
        new PluginError({
          plugin: named.plugin.name,
          message:
            "it brings models or adapters in `start`, when the catalogue is made already. Fix: provide them in `register`.",
        }),
      )
  }).pipe(
    Effect.catchDefect((defect) =>
      Effect.fail(
        new PluginError({
          plugin: named.plugin.name,
          message: `it threw while starting: ${defect instanceof Error ? defect.stack : String(defect)}`,
          cause: defect,
        }),
      ),
    ),
  )

export interface StartOptions {
  /** Start only the providers of these tokens and what they need. Default: all plugins. */
  readonly wanted?: readonly Token<unknown>[]
  onStarted?(key: string): void
}

/** Starts the plugins in order, each after its migrations. */
export const startDeployment = (
  deployment: AssembledDeployment,
  { wanted, onStarted }: StartOptions = {},
): Effect.Effect<void, PluginError, Scope.Scope> =>
  Effect.gen(function* () {
    for (const named of wanted ? withDependencies(deployment.order, wanted) : deployment.order) {
      yield* startOne(deployment, named)
      onStarted?.(named.key)
    }
  })
