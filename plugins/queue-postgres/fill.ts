import { Effect } from "effect"
import type { Clock, PortError } from "../../core/index.ts"
import type { ClaimedJob, JobRows, NextTimes } from "./job-rows.ts"
import type { Consumer, Run } from "./run.ts"

/** Rows of one claim: no statement holds many locks. */
const maxClaim = 100

export interface FillParts {
  readonly rows: JobRows
  readonly clock: Clock
  readonly perform: (consumer: Consumer, run: Run) => Effect.Effect<void>
  /** There may be something to do: work was begun, a run has ended, or a consumer came. */
  readonly wake: () => void
  readonly onDead: (handler: string, jobs: number) => void
  readonly onLook: (consumer: Consumer, lagMs: number) => void
}

/** Looks for lost and due work and begins it. Answers when it should look again at the latest, in Unix ms. */
export const makeFill = (
  consumers: ReadonlySet<Consumer>,
  { rows, clock, perform, wake, onDead, onLook }: FillParts,
): Effect.Effect<number, PortError> => {
  const start = (consumer: Consumer, claimed: ClaimedJob, untilMs: number) =>
    Effect.suspend(() => {
      const run: Run = { claimed, untilMs, isLost: false, fiber: undefined }
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

  /** Answers whether there may be more to take at once. */
  const claim = (consumer: Consumer) =>
    Effect.gen(function* () {
      const wanted = Math.min(maxClaim, consumer.handler.concurrency - consumer.running.size)
      if (wanted <= 0 || consumer.isStopping) return false
      const untilMs = clock.nowMs() + consumer.handler.leaseMs
      const claimed = yield* rows.claim(consumer.handler, wanted)
      for (const one of claimed) yield* start(consumer, one, untilMs)
      return claimed.length === wanted && consumer.running.size < consumer.handler.concurrency
    })

  /** Answers when there will be more to do for it, as far as is known now. */
  const fillOne = (consumer: Consumer, { dueMs, leaseEndMs }: NextTimes) =>
    Effect.gen(function* () {
      const nowMs = clock.nowMs()
      onLook(consumer, Math.max(0, nowMs - dueMs))
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
        const found = next.get(consumer.handler.name)
        if (found) soonestMs = Math.min(soonestMs, yield* fillOne(consumer, found))
      }
      return soonestMs
    })
  })
}
