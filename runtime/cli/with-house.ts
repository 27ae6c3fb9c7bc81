import { Effect, Exit, type Scope } from "effect"
import type { Token } from "../../core/tokens.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import { assemble, type House } from "../boot/assemble.ts"
import { makeDataDir } from "../boot/kernel.ts"
import { startHouse } from "../boot/start.ts"
import { loadConfig } from "../config/load.ts"
import { makeLog } from "../services/log.ts"
import { reasonOf, refuse } from "./refuse.ts"

/** Assembles the house for one command, does `work`, and closes everything again. Exits with 1 and the reason when it fails. */
export const withHouse = async <A, E>(
  file: string,
  work: (house: House) => Effect.Effect<A, E, Scope.Scope>,
): Promise<A> => {
  const program = Effect.scoped(
    Effect.gen(function* () {
      const config = yield* Effect.try({
        try: () => loadConfig(file, process.env),
        catch: (cause) => cause as Error,
      })
      const house = yield* assemble(
        config,
        "command",
        makeLog({ level: "warn", destination: "stderr" }),
      )
      return yield* work(house)
    }),
  )
  const exit = await Effect.runPromiseExit(program)
  if (Exit.isFailure(exit)) return refuse(reasonOf(exit))
  return exit.value
}

/** Starts the plugins that `wanted` needs. */
export const startWanted = (house: House, wanted: readonly Token<unknown>[]) =>
  Effect.andThen(
    makeDataDir(resolve(house.container, Tokens.deployment)),
    startHouse(house, { wanted }),
  )

/** The same as `withHouse`, with the plugins started that `wanted` needs; `work` is asked when they are. */
export const withStarted = <A, E>(
  file: string,
  wanted: (house: House) => readonly Token<unknown>[],
  work: (house: House) => Effect.Effect<A, E, Scope.Scope>,
) =>
  withHouse(file, (house) =>
    Effect.andThen(
      startWanted(house, wanted(house)),
      Effect.suspend(() => work(house)),
    ),
  )
