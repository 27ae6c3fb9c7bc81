import { Cause, Effect, type Scope } from "effect"
import type { BatchDeps } from "../deps.ts"
import { keepSwept } from "./sweeper.ts"
import { makeDesk } from "./worker.ts"

/** Works batches through until its Scope closes. Several processes may do so on one database. */
export const keepWorking = (deps: BatchDeps): Effect.Effect<never, never, Scope.Scope> =>
  Effect.gen(function* () {
    const desk = makeDesk(deps)
    yield* Effect.forkScoped(keepSwept(deps))
    const look = Effect.catchCause(desk.look, (cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() =>
            deps.log.warn("batch.poll_failed", "could not look for batches", {
              cause: Cause.pretty(cause),
            }),
          ),
    )
    return yield* desk
      .rest(deps.limits.pollMs)
      .pipe(Effect.andThen(look), Effect.forever, Effect.ensuring(desk.stop))
  })
