import { Effect } from "effect"
import type { Clock, PortError } from "../../core/index.ts"
import type { ClaimedJob, JobRows, NextTimes } from "./job-rows.ts"
import type { Consumer, JobRun } from "./run.ts"

/** The rows of one claim, so that no statement holds many locks. */
const maxClaim = 100

export interface FillDeps {
  readonly rows: JobRows
  readonly clock: Clock
  readonly perform: (consumer: Consumer, run: JobRun) => Effect.Effect<void>
  /**
   * Called when there may be something to do: a job was sent, a run has ended, or a consumer was
   * added.
   */
  readonly wake: () => void
  readonly onDead: (handler: string, jobs: number) => void
  readonly onPoll: (consumer: Consumer, lagMs: number, depth: number) => void
}

/**
 * Claims lost and due jobs and begins to run them. Returns when to poll again at the latest, in
 * Unix ms.
 */
export const makeFill = (
  consumers: ReadonlySet<Consumer>,
  { rows, clock, perform, wake, onDead, onPoll }: FillDeps,
): Effect.Effect<number, PortError> => {
  const start = (consumer: Consumer, claimed: ClaimedJob, untilMs: number) =>
    Effect.suspend(() => {
      const run: JobRun = { claimed, untilMs, isLost: false, fiber: undefined }
      consumer.running.add(run)
      const ended = Effect.sync(() => {
        consumer.running.delete(run)
        wake()
      })
      return Effect.map(
        Effect.forkDetach(Effect.ensuring(perform(consumer, run), ended), {
          startImmediately: true,
        }),
        (fiber) => {
          run.fiber = fiber
        },
      )
    })

  /** Returns whether there may be more jobs to claim at once. */
  const claim = (consumer: Consumer) =>
    Effect.gen(function* () {
      const free = Math.min(maxClaim, consumer.handler.concurrency - consumer.running.size)
      if (free <= 0 || consumer.isStopping) return false
      const untilMs = clock.nowMs() + consumer.handler.leaseMs
      const claimed = yield* rows.claim(consumer.handler, free)
      for (const one of claimed) yield* start(consumer, one, untilMs)
      return claimed.length === free && consumer.running.size < consumer.handler.concurrency
    })

  /** Returns when the consumer's next job is due or the next lease ends, as far as is known now. */
  const fillOne = (consumer: Consumer, { dueMs, depth, leaseEndMs }: NextTimes) =>
    Effect.gen(function* () {
      const nowMs = clock.nowMs()
      onPoll(consumer, Math.max(0, nowMs - dueMs), depth)
      if (leaseEndMs <= nowMs) onDead(consumer.handler.name, yield* rows.expire(consumer.handler))
      if ((dueMs <= nowMs || leaseEndMs <= nowMs) && (yield* claim(consumer))) return nowMs
      return Math.min(...[dueMs, leaseEndMs].filter((ms) => ms > nowMs), Number.POSITIVE_INFINITY)
    })

  return Effect.suspend(() => {
    const all = [...consumers]
    if (all.length === 0) return Effect.succeed(Number.POSITIVE_INFINITY)
    return Effect.gen(function* () {
      const next = yield* rows.next([...new Set(all.map(({ handler }) => handler.name))])
      let soonestMs = Number.POSITIVE_INFINITY
      for (const consumer of all) {
        const times = next.get(consumer.handler.name)
        if (times) soonestMs = Math.min(soonestMs, yield* fillOne(consumer, times))
      }
      return soonestMs
    })
  })
}
