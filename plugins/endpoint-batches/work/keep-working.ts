import { Cause, Effect, type Scope } from "effect"
import type { BatchHouse } from "../house.ts"
import { makeDesk } from "./desk.ts"
import { keepSwept } from "./sweeper.ts"

/** Works batches through until its Scope closes. Several processes may do so on one database. */
export const keepWorking = (house: BatchHouse): Effect.Effect<never, never, Scope.Scope> =>
  Effect.gen(function* () {
    const desk = makeDesk(house)
    yield* Effect.forkScoped(keepSwept(house))
    const look = Effect.catchCause(desk.look, (cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() =>
            house.log.warn("could not look for batches", { cause: Cause.pretty(cause) }),
          ),
    )
    return yield* desk
      .rest(house.limits.pollMs)
      .pipe(Effect.andThen(look), Effect.forever, Effect.ensuring(desk.stop))
  })
