import { Effect, Exit, type Scope } from "effect"
import { resolve, resolveOptional, type Token, Tokens } from "../../core/tokens.ts"
import { type AssembledDeployment, assemble } from "../boot/assemble.ts"
import { makeDataDir } from "../boot/kernel.ts"
import { startDeployment } from "../boot/start.ts"
import { suggestPlugins } from "../boot/suggest-plugins.ts"
import { loadConfig } from "../config/load.ts"
import type { Mask } from "../config/mask.ts"
import { makeLog } from "../services/log.ts"
import { errorOf, refuse } from "./refuse.ts"

/** Hides what came from the environment of any of them. */
const joined = (masks: readonly Mask[]): Mask => ({
  text: (text) => masks.reduce((hidden, mask) => mask.text(hidden), text),
  line: (line) => masks.reduce((hidden, mask) => mask.line(hidden), line),
})

/**
 * Assembles the deployments of these config files for one command, runs `work`, and closes
 * everything. Exits with 1 and the reason on failure.
 */
export const withDeployments = async <A, E>(
  files: readonly string[],
  work: (deployments: readonly AssembledDeployment[]) => Effect.Effect<A, E, Scope.Scope>,
  refused: (error: unknown, mask: Mask) => never = refuse,
): Promise<A> => {
  const masks: Mask[] = []
  const mask = joined(masks)
  const assembled = (file: string) =>
    Effect.gen(function* () {
      const config = yield* Effect.try({
        try: () => loadConfig(file, process.env),
        catch: (cause) => cause as Error,
      })
      masks.push(config.mask)
      const write = (line: string) => void process.stderr.write(mask.line(line))
      const log = makeLog({ level: "warn", destination: { write } })
      return yield* assemble(config, "command", log)
    })
  const program = Effect.scoped(Effect.flatMap(Effect.forEach(files, assembled), work))
  const exit = await Effect.runPromiseExit(program)
  if (Exit.isFailure(exit)) return refused(errorOf(exit), mask)
  return exit.value
}

/** The same for one config file. */
export const withDeployment = <A, E>(
  file: string,
  work: (deployment: AssembledDeployment) => Effect.Effect<A, E, Scope.Scope>,
  refused?: (error: unknown, mask: Mask) => never,
): Promise<A> => withDeployments([file], ([deployment]) => work(deployment!), refused)

/**
 * Returns the data folder. On a fresh deployment the plugins would create empty data, which is
 * always consistent.
 */
export const mustHaveData = ({
  container,
  order,
}: AssembledDeployment): Effect.Effect<string, Error> =>
  Effect.suspend(() => {
    const { dataDir } = resolve(container, Tokens.deployment)
    const isThere = order.every(({ instance }) => instance.hasData?.(container) ?? true)
    return isThere
      ? Effect.succeed(dataDir)
      : Effect.fail(
          new Error(
            `There are no data in ${dataDir}, so nothing can be compared. Fix: set dataDir (RAKIT_DATA) to the folder of the server.`,
          ),
        )
  })

/** Starts the providers of `wanted` and what they need. */
export const startWanted = (deployment: AssembledDeployment, wanted: readonly Token<unknown>[]) =>
  Effect.andThen(
    makeDataDir(resolve(deployment.container, Tokens.deployment)),
    startDeployment(deployment, { wanted }),
  )

/** `withDeployment`, with the providers of `wanted` started before `work` runs. */
export const withStarted = <A, E>(
  file: string,
  wanted: (deployment: AssembledDeployment) => readonly Token<unknown>[],
  work: (deployment: AssembledDeployment) => Effect.Effect<A, E, Scope.Scope>,
) =>
  withDeployment(file, (deployment) =>
    Effect.andThen(
      startWanted(deployment, wanted(deployment)),
      Effect.suspend(() => work(deployment)),
    ),
  )

/**
 * Runs `work` on the provider of a token. `task` completes the message where there is none: `makes
 * keys`.
 */
export const withProvider = <T, A, E>(
  file: string,
  token: Token<T>,
  task: string,
  work: (provider: T) => Effect.Effect<A, E>,
) =>
  withStarted(
    file,
    () => [token as Token<unknown>],
    ({ container }) =>
      Effect.gen(function* () {
        const provider = resolveOptional(container, token)
        if (provider !== undefined) return yield* work(provider)
        const fix = yield* Effect.promise(() => suggestPlugins(token as Token<unknown>))
        return yield* Effect.fail(new Error(`No plugin of this deployment ${task}. Fix: ${fix}`))
      }),
  )
