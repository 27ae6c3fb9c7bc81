import { Cause, Deferred, Effect, Exit, Fiber, Option } from "effect"

/** `lost`: another worker has it. `yielded`: another tenant's batch waits for a place. */
export type StopReason = "cancelled" | "expired" | "lost" | "yielded"

/** Tells all that works on one batch that no further line is to begin. The first reason stays. */
export interface Stop {
  readonly reason: StopReason | undefined
  tell(reason: StopReason): void
  /** Waits; answers whether it was told meanwhile. */
  toldWithin(ms: number): Effect.Effect<boolean>
  /** Runs until it is told: interrupts, waits for the end, and answers nothing. */
  during<A, E>(work: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>, E>
}

export const makeStop = (): Stop => {
  const told = Deferred.makeUnsafe<void>()
  const fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  let reason: StopReason | undefined

  const during: Stop["during"] = <A, E>(work: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      if (reason) return Effect.succeed(Option.none<A>())
      return Effect.flatMap(Effect.forkChild(work, { startImmediately: true }), (fiber) => {
        fibers.add(fiber)
        const ended = Effect.flatMap(
          Fiber.await(fiber),
          (exit): Effect.Effect<Option.Option<A>, E> => {
            const isStopped = reason && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
            return isStopped ? Effect.succeed(Option.none()) : Effect.map(exit, Option.some)
          },
        )
        return ended.pipe(
          Effect.onInterrupt(() => Fiber.interrupt(fiber)),
          Effect.ensuring(Effect.sync(() => void fibers.delete(fiber))),
        )
      })
    })

  return {
    get reason() {
      return reason
    },
    tell: (why) => {
      if (reason) return
      reason = why
      Deferred.doneUnsafe(told, Effect.void)
      for (const fiber of fibers) fiber.interruptUnsafe()
    },
    toldWithin: (ms) => Effect.map(Effect.timeoutOption(Deferred.await(told), ms), Option.isSome),
    during,
  }
}
