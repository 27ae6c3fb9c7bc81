import { Effect, Fiber, Semaphore } from "effect"
import type { Clock, PortError } from "../../core/index.ts"
import type { Claimed, Next, PayloadRows } from "./payload-rows.ts"
import type { Consumer, Run } from "./run.ts"

/** Rows of one claim: no statement holds many locks. */
const maxClaim = 100

export interface WorkerParts {
  readonly rows: PayloadRows
  readonly clock: Clock
  readonly perform: (consumer: Consumer, run: Run) => Effect.Effect<void>
  /** There may be something to do: work was begun, a run has ended, or a consumer came. */
  readonly wake: () => void
  readonly onDead: (job: string, payloads: number) => void
  readonly onLook: (consumer: Consumer, lagMs: number) => void
}

/** What one process does with the table. Three moves, each of which may be made at any time: `fill`, `renew`, `dropLost`. */
export const makeWorker = ({ rows, clock, perform, wake, onDead, onLook }: WorkerParts) => {
  const consumers = new Set<Consumer>()
  // a stop waits until what is being claimed has begun: only then can it be interrupted
  const lock = Semaphore.makeUnsafe(1)

  const start = (consumer: Consumer, claimed: Claimed, untilMs: number) =>
    Effect.suspend(() => {
      const run: Run = { claimed, untilMs, isLost: false, fiber: undefined }
      consumer.running.add(run)
      const ended = Effect.sync(() => {
        consumer.running.delete(run)
        wake()
      })
      return Effect.map(Effect.forkDetach(Effect.ensuring(perform(consumer, run), ended), { startImmediately: true }), (fiber) => {
        run.fiber = fiber
      })
    })

  const claim = (consumer: Consumer) =>
    Effect.gen(function* () {
      const free = Math.min(maxClaim, consumer.job.concurrency - consumer.running.size)
      if (free <= 0 || consumer.isStopping) return
      const untilMs = clock.nowMs() + consumer.job.leaseMs
      for (const claimed of yield* rows.claim(consumer.job, free)) yield* start(consumer, claimed, untilMs)
    })

  /** Answers when there will be more to do for it, as far as is known now. */
  const fillOne = (consumer: Consumer, { dueMs, lostMs }: Next) =>
    Effect.gen(function* () {
      const nowMs = clock.nowMs()
      onLook(consumer, Math.max(0, nowMs - dueMs))
      if (lostMs <= nowMs) onDead(consumer.job.name, yield* rows.expire(consumer.job))
      if (dueMs <= nowMs || lostMs <= nowMs) yield* claim(consumer)
      return Math.min(...[dueMs, lostMs].filter((ms) => ms > nowMs), Number.POSITIVE_INFINITY)
    })

  const fill: Effect.Effect<number, PortError> = Effect.suspend(() => {
    const all = [...consumers]
    if (all.length === 0) return Effect.succeed(Number.POSITIVE_INFINITY)
    return Effect.gen(function* () {
      const next = yield* rows.next([...new Set(all.map(({ job }) => job.name))])
      let soonestMs = Number.POSITIVE_INFINITY
      for (const consumer of all) {
        const found = next.get(consumer.job.name)
        if (found) soonestMs = Math.min(soonestMs, yield* fillOne(consumer, found))
      }
      return soonestMs
    })
  })

  const runs = (consumer: Consumer) => [...consumer.running].filter(({ isLost }) => !isLost)

  const renewOf = (consumer: Consumer) =>
    Effect.suspend(() => {
      const nowMs = clock.nowMs()
      const { leaseMs } = consumer.job
      const old = runs(consumer).filter(({ untilMs }) => untilMs - nowMs <= (leaseMs * 2) / 3)
      if (old.length === 0) return Effect.void
      return Effect.map(
        rows.renew(
          old.map(({ claimed }) => claimed),
          nowMs + leaseMs,
        ),
        (kept) => {
          for (const run of old)
            if (kept.has(run.claimed.id)) run.untilMs = nowMs + leaseMs
            else run.untilMs = nowMs
        },
      )
    })

  const stop = (consumer: Consumer): Effect.Effect<void> =>
    Effect.suspend(() => {
      consumer.isStopping = true
      const interrupted = Effect.suspend(() => Fiber.interruptAll([...consumer.running].flatMap(({ fiber }) => fiber ?? [])))
      return lock
        .withPermits(1)(Effect.void)
        .pipe(Effect.andThen(interrupted), Effect.andThen(Effect.sync(() => void consumers.delete(consumer))))
    })

  return {
    add: (consumer: Consumer): void => {
      consumers.add(consumer)
      wake()
    },
    stop,
    consumes: (job: string): boolean => [...consumers].some((consumer) => consumer.job.name === job),
    /** Looks for lost and due work and begins it. Answers when it should look again at the latest, in Unix ms. */
    fill: lock.withPermits(1)(Effect.uninterruptible(fill)),
    /** Keeps what runs. What is no longer ours is noticed by `dropLost`. */
    renew: Effect.suspend(() => Effect.forEach([...consumers], renewOf, { discard: true })),
    /** Interrupts the runs whose lease has ended: somebody else may have begun them. Asks nobody, so it works when the database does not. */
    dropLost: Effect.sync(() => {
      for (const consumer of consumers)
        for (const run of runs(consumer))
          if (run.untilMs <= clock.nowMs()) {
            run.isLost = true
            run.fiber?.interruptUnsafe()
          }
    }),
  }
}
export type Worker = ReturnType<typeof makeWorker>
