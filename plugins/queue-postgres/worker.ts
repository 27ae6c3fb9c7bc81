import { Effect, Fiber, Semaphore } from "effect"
import type { Clock, PortError } from "../../core/index.ts"
import { type FillParts, makeFill } from "./fill.ts"
import type { JobRows } from "./job-rows.ts"
import type { Consumer, Run } from "./run.ts"

const held = (consumer: Consumer): readonly Run[] =>
  [...consumer.running].filter(({ isLost }) => !isLost)

const renewOf = (rows: JobRows, clock: Clock, consumer: Consumer): Effect.Effect<void, PortError> =>
  Effect.suspend(() => {
    const nowMs = clock.nowMs()
    const { leaseMs } = consumer.handler
    const old = held(consumer).filter(({ untilMs }) => untilMs - nowMs <= (leaseMs * 2) / 3)
    if (old.length === 0) return Effect.void
    const renewed = rows.renew(
      old.map(({ claimed }) => claimed),
      nowMs + leaseMs,
    )
    return Effect.map(renewed, (kept) => {
      for (const run of old) run.untilMs = kept.has(run.claimed.id) ? nowMs + leaseMs : nowMs
    })
  })

/** What one process does with the table. Three moves, each of which may be made at any time: `fill`, `renew`, `dropLost`. */
export const makeWorker = (parts: FillParts) => {
  const { rows, clock, wake } = parts
  const consumers = new Set<Consumer>()
  const fill = makeFill(consumers, parts)
  // a stop waits until what is being claimed has begun: only then can it be interrupted
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
    /** Looks for lost and due work and begins it. Answers when it should look again at the latest, in Unix ms. */
    fill: lock.withPermits(1)(Effect.uninterruptible(fill)),
    /** Keeps what runs. What is no longer ours is noticed by `dropLost`. */
    renew: Effect.suspend(() =>
      Effect.forEach([...consumers], (consumer) => renewOf(rows, clock, consumer), {
        discard: true,
      }),
    ),
    /** Interrupts the runs whose lease has ended: somebody else may have begun them. Asks nobody, so it works when the database does not. */
    dropLost: Effect.sync(() => {
      for (const consumer of consumers)
        for (const run of held(consumer))
          if (run.untilMs <= clock.nowMs()) {
            run.isLost = true
            run.fiber?.interruptUnsafe()
          }
    }),
  }
}
export type Worker = ReturnType<typeof makeWorker>
