import { Cause, Effect, type Scope, Semaphore } from "effect"
import type { EventName, Log } from "./services/log.ts"

export interface Loop {
  /**
   * A failure of the work is logged as a warning with this event and sentence, and never ends the
   * loop.
   */
  readonly event: EventName
  readonly message: string
  /** From the end of one run to the start of the next. */
  readonly everyMs: number | (() => number)
  /** The first run waits, too. */
  readonly isDelayed?: true
}

/** Runs `work` again and again in the background until the Scope closes. */
export const repeat = (
  log: Log,
  { event, message, everyMs, isDelayed }: Loop,
  work: Effect.Effect<unknown, unknown>,
): Effect.Effect<void, never, Scope.Scope> => {
  const pauseMs = typeof everyMs === "function" ? everyMs : () => everyMs
  const pause = Effect.suspend(() => Effect.sleep(pauseMs()))
  const run = Effect.catchCause(work, (cause) =>
    Effect.sync(() => log.warn(event, message, { cause: Cause.pretty(cause) })),
  )
  return Effect.asVoid(
    Effect.forkScoped(
      Effect.forever(isDelayed ? Effect.andThen(pause, run) : Effect.andThen(run, pause)),
    ),
  )
}

/** Several loops of one owner, whose runs never overlap: together they take one connection of a pool. */
export const repeatInTurn = (
  log: Log,
  loops: readonly (readonly [Loop, Effect.Effect<unknown, unknown>])[],
): Effect.Effect<void, never, Scope.Scope> => {
  const turn = Semaphore.makeUnsafe(1)
  return Effect.forEach(loops, ([loop, work]) => repeat(log, loop, turn.withPermits(1)(work)), {
    discard: true,
  })
}
