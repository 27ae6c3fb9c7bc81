import { Effect, Fiber, Semaphore } from "effect"
import type { Clock, PortError } from "../../core/index.ts"
import { type FillDeps, makeFill } from "./fill.ts"
import type { JobRows } from "./job-rows.ts"
import type { Consumer, JobRun } from "./run.ts"

const unlost = (consumer: Consumer): readonly JobRun[] =>
  [...consumer.running].filter(({ isLost }) => !isLost)

const renewOf = (rows: JobRows, clock: Clock, consumer: Consumer): Effect.Effect<void, PortError> =>
  Effect.suspend(() => {
    const nowMs = clock.nowMs()
    const { leaseMs } = consumer.handler
    const old = unlost(consumer).filter(({ untilMs }) => untilMs - nowMs <= (leaseMs * 2) / 3)
    if (old.length === 0) return Effect.void
    const renewed = rows.renew(
      old.map(({ claimed }) => claimed),
      nowMs + leaseMs,
    )
    return Effect.map(renewed, (kept) => {
      for (const run of old) run.untilMs = kept.has(run.claimed.id) ? nowMs + leaseMs : nowMs
    })
  })

/** The worker of one process. `fill`, `renew` and `dropLost` may each be run at any time. */
export const makeWorker = (deps: FillDeps) => {
  const { rows, clock, wake } = deps
  const consumers = new Set<Consumer>()
  const fill = makeFill(consumers, deps)
  // a stop waits until the claimed jobs have begun to run: only then can they be interrupted
  const lock = Semaphore.makeUnsafe(1)

  const stop = (consumer: Consumer): Effect.Effect<void> =>
    Effect.suspend(() => {
      consumer.isStopping = true
      const interrupted = Effect.suspend(() =>
        Fiber.interruptAll([...consumer.running].flatMap(({ fiber }) => fiber ?? [])),
      )
      return lock
        .withPermits(1)(Effect.void)
        .pipe(
          Effect.andThen(interrupted),
          Effect.andThen(Effect.sync(() => void consumers.delete(consumer))),
        )
    })

  return {
    add: (consumer: Consumer): void => {
      consumers.add(consumer)
      wake()
    },
    stop,
    consumes: (handler: string): boolean =>
      [...consumers].some((consumer) => consumer.handler.name === handler),
    /**
     * Claims lost and due jobs and begins to run them. Returns when to poll again at the latest, in
     * Unix ms.
     */
    fill: lock.withPermits(1)(Effect.uninterruptible(fill)),
    /** Renews the leases of running jobs. `dropLost` handles those that are lost. */
    renew: Effect.suspend(() =>
      Effect.forEach([...consumers], (consumer) => renewOf(rows, clock, consumer), {
        discard: true,
      }),
    ),
    /**
     * Interrupts the runs whose lease has ended: another process may have begun them. Needs no
     * database.
     */
    dropLost: Effect.sync(() => {
      for (const consumer of consumers)
        for (const run of unlost(consumer))
          if (run.untilMs <= clock.nowMs()) {
            run.isLost = true
            run.fiber?.interruptUnsafe()
          }
    }),
  }
}
export type Worker = ReturnType<typeof makeWorker>
