import { Effect, Option } from "effect"
import { type JobHandler, PortError, type WhenStarted } from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import { type DeliveryAttempt, deliveryTerms, scheduleAttempt } from "./delivery-attempt.ts"
import { type FairLimiterOptions, makeFairLimiter } from "./fair-limiter.ts"
import { isAttemptDue, recordAttempt } from "./record-attempt.ts"
import { isOver } from "./retry-schedule.ts"
import { sendAttempt } from "./send-attempt.ts"

const shortestDeferMs = 1_000
const longestDeferMs = 60_000

/** Exponential with jitter, so that a long queue before one webhook costs little. */
const deferMs = (deferred: number, random: () => number): number =>
  Math.round(Math.min(shortestDeferMs * 2 ** deferred, longestDeferMs) * (0.5 + random()))

const deliver = (deps: WebhookDeps, attempt: DeliveryAttempt): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const deliveries = makeDeliveryRows(deps.database)
    const delivery = yield* deliveries.find(attempt.delivery)
    if (!isAttemptDue(attempt, delivery)) return
    const registration = yield* makeRegistrationRows(deps.database).findById(delivery.webhook_id)
    const round = {
      tries: delivery.tries,
      beganMs: delivery.round_at.getTime(),
      once: delivery.once,
    }
    if (!registration || isOver(round, deps.clock.nowMs()))
      return yield* deliveries.giveUp(delivery.id)
    yield* recordAttempt(deps, attempt, yield* sendAttempt(deps, registration, delivery))
  })

/**
 * Each attempt of a delivery is a job of its own: retry-schedule.ts sets the waits, and the queue's
 * own retries are for crashes.
 */
export const makeDeliveryHandler = (
  started: WhenStarted<WebhookDeps>,
  options: FairLimiterOptions,
): JobHandler<DeliveryAttempt> => {
  const limiter = makeFairLimiter(options)
  return {
    ...deliveryTerms,
    concurrency: options.atOnce,
    run: (attempt) =>
      Effect.gen(function* () {
        const deps = yield* Effect.mapError(
          started,
          ({ message }) => new PortError({ port: "webhook", message }),
        )
        const delivered = yield* limiter(attempt.webhook, deliver(deps, attempt))
        if (Option.isSome(delivered)) return
        yield* scheduleAttempt(
          deps.queue,
          { ...attempt, deferred: attempt.deferred + 1 },
          deferMs(attempt.deferred, deps.random),
        )
      }),
  }
}
