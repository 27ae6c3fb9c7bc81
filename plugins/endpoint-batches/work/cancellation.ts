import { Cause, Deferred, Effect, Exit, Fiber, Option } from "effect"

/** `lost`: another worker has the lease. `yielded`: the slot is for another tenant's batch. */
export type CancelReason = "cancelled" | "expired" | "lost" | "yielded"

/** Cancels the work on one batch in this process: no further line begins. The first reason wins. */
export interface Cancellation {
  readonly reason: CancelReason | undefined
  cancel(reason: CancelReason): void
  /** Sleeps; true, and at once, if it is cancelled meanwhile. */
  cancelledWithin(ms: number): Effect.Effect<boolean>
  /** Runs `work` until it is cancelled: then interrupts it, waits for its end, and returns none. */
  during<A, E>(work: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>, E>
}

export const makeCancellation = (): Cancellation => {
  const cancelled = Deferred.makeUnsafe<void>()
  const fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  let reason: CancelReason | undefined

  const during: Cancellation["during"] = <A, E>(work: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      if (reason) return Effect.succeed(Option.none<A>())
      return Effect.flatMap(Effect.forkChild(work, { startImmediately: true }), (fiber) => {
        fibers.add(fiber)
        const ended = Effect.flatMap(
          Fiber.await(fiber),
          (exit): Effect.Effect<Option.Option<A>, E> => {
            const isOurs = reason && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
            return isOurs ? Effect.succeed(Option.none()) : Effect.map(exit, Option.some)
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
    cancel: (why) => {
      if (reason) return
      reason = why
      Deferred.doneUnsafe(cancelled, Effect.void)
      for (const fiber of fibers) fiber.interruptUnsafe()
    },
    cancelledWithin: (ms) =>
      Effect.map(Effect.timeoutOption(Deferred.await(cancelled), ms), Option.isSome),
    during,
  }
}
