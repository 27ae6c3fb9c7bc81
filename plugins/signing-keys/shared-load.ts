import { Effect, Exit, Semaphore } from "effect"
import type { Clock } from "../../core/index.ts"

export interface SharedLoad<E> {
  /** A load that begins after the request; requests that wait for the same load share it. */
  readonly now: Effect.Effect<void, E>
  /** The same, but at least `minGapMs` after the last load began. */
  readonly paced: Effect.Effect<void, E>
  /** A load only if the last one is older than `minGapMs`. */
  readonly ifOld: Effect.Effect<void, E>
}

/**
 * One load at a time. However many requests there are, `paced` and `ifOld` load at most once in
 * `minGapMs`.
 */
export const shareLoad = <E>(
  load: Effect.Effect<void, E>,
  clock: Clock,
  minGapMs: number,
): SharedLoad<E> => {
  const lock = Semaphore.makeUnsafe(1)
  let begun = 0
  let lastMs = Number.NEGATIVE_INFINITY
  let last: Exit.Exit<void, E> = Exit.void
  const loadNow = Effect.gen(function* () {
    begun++
    lastMs = clock.monotonicMs()
    last = yield* Effect.exit(load)
    return yield* last
  })
  const waitMs = () => lastMs + minGapMs - clock.monotonicMs()
  const asked = (pace: () => number) =>
    Effect.suspend(() => {
      const seen = begun
      return lock.withPermits(1)(
        Effect.gen(function* () {
          if (begun > seen) return yield* last
          if (pace() > 0) yield* Effect.sleep(pace())
          // an interruption would leave the other requests without a result
          return yield* Effect.uninterruptible(loadNow)
        }),
      )
    })
  const now = asked(() => 0)
  return {
    now,
    paced: asked(waitMs),
    ifOld: Effect.suspend(() => (waitMs() > 0 ? Effect.void : now)),
  }
}
