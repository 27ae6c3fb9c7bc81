import { Effect, Exit, type Scope } from "effect"
import { resolve, resolveOptional, type Token, Tokens } from "../../core/tokens.ts"
import { type AssembledDeployment, assemble } from "../boot/assemble.ts"
import { makeDataDir } from "../boot/kernel.ts"
import { startDeployment } from "../boot/start.ts"
import { suggestPlugins } from "../boot/suggest-plugins.ts"
import { loadConfig } from "../config/load.ts"
import { makeLog } from "../services/log.ts"
import { reasonOf, refuse } from "./refuse.ts"

/** Assembles the deployment for one command, does `work`, and closes everything again. Exits with 1 and the reason when it fails. */
export const withDeployment = async <A, E>(
  file: string,
  work: (deployment: AssembledDeployment) => Effect.Effect<A, E, Scope.Scope>,
): Promise<A> => {
  const program = Effect.scoped(
    Effect.gen(function* () {
      const config = yield* Effect.try({
        try: () => loadConfig(file, process.env),
        catch: (cause) => cause as Error,
      })
      const deployment = yield* assemble(
        config,
        "command",
        makeLog({ level: "warn", destination: "stderr" }),
      )
      return yield* work(deployment)
    }),
  )
  const exit = await Effect.runPromiseExit(program)
  if (Exit.isFailure(exit)) return refuse(reasonOf(exit))
  return exit.value
}

/** Starts the plugins that `wanted` needs. */
export const startWanted = (deployment: AssembledDeployment, wanted: readonly Token<unknown>[]) =>
  Effect.andThen(
    makeDataDir(resolve(deployment.container, Tokens.deployment)),
    startDeployment(deployment, { wanted }),
  )

/** The same as `withDeployment`, with the plugins started that `wanted` needs; `work` is asked when they are. */
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

/** Starts what `token` needs, and works with its provider. `task` says what a deployment without one can't do. */
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
