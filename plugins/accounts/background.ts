import { Cause, Effect, Fiber, Queue, type Scope } from "effect"
import type { Log } from "../../core/index.ts"

const maxWaiting = 1_000
const lanes = 2

/** Runs work whose duration a client must not see. Failures are logged. */
export interface Background {
  /** Queues the work and returns at once. */
  later(name: string, work: Effect.Effect<void, unknown>): void
  /** Returns the number of jobs that are not done yet. */
  pending(): number
}

/**
 * At most 1,000 jobs wait; further ones are dropped and logged. When the Scope closes, waiting jobs
 * get 5 s to finish.
 */
export const makeBackground = (log: Log): Effect.Effect<Background, never, Scope.Scope> =>
  Effect.gen(function* () {
    const waiting = yield* Queue.dropping<Effect.Effect<void>, Cause.Done>(maxWaiting)
    const lane = Effect.forever(Effect.flatMap(Queue.take(waiting), (work) => work)).pipe(
      Effect.catchCause(() => Effect.void),
    )
    const fibers = yield* Effect.forEach(Array.from({ length: lanes }), () =>
      Effect.forkScoped(lane, { startImmediately: true }),
    )
    const drain = Effect.andThen(
      Queue.end(waiting),
      Effect.forEach(fibers, Fiber.await, { discard: true }),
    )
    yield* Effect.addFinalizer(() => Effect.timeoutOption(drain, "5 seconds"))
    let pending = 0
    const done = Effect.sync(() => {
      pending -= 1
    })
    return {
      pending: () => pending,
      later: (name, work) => {
        const logged = Effect.catchCause(Effect.asVoid(work), (cause) =>
          Effect.sync(() =>
            log.error("account.background_failed", `${name} failed`, {
              cause: Cause.pretty(cause),
            }),
          ),
        )
        if (Queue.offerUnsafe(waiting, Effect.ensuring(logged, done))) pending += 1
        else
          log.error("account.background_dropped", `${name} was dropped: too much waits`, {
            waiting: maxWaiting,
          })
      },
    }
  })
