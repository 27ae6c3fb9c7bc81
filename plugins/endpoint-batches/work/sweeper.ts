import { Cause, Effect } from "effect"
import type { BatchDeps } from "../deps.ts"
import { dropEnded, dropOrphans } from "./sweep.ts"

const turnMs = 60_000
const turnsPerHour = 60

/** Its failure is logged, and stops neither the other work nor the next turn. */
const careful = <E>(
  { log }: BatchDeps,
  what: string,
  work: Effect.Effect<number, E>,
): Effect.Effect<void> =>
  work.pipe(
    Effect.tap((count) => Effect.sync(() => count > 0 && log.info("batch.swept", what, { count }))),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() =>
            log.warn("batch.sweep_failed", `${what}: failed`, { cause: Cause.pretty(cause) }),
          ),
    ),
    Effect.asVoid,
  )

/** Every worker sweeps; several at once do no harm. */
export const keepSwept = (deps: BatchDeps): Effect.Effect<never> => {
  let turn = 0
  return Effect.suspend(() =>
    Effect.gen(function* () {
      yield* careful(deps, "results of ended batches dropped", dropEnded(deps))
      if (turn % turnsPerHour === 0)
        yield* careful(deps, "orphan parts of batches dropped", dropOrphans(deps))
      turn += 1
    }),
  ).pipe(Effect.andThen(Effect.sleep(turnMs)), Effect.forever)
}
