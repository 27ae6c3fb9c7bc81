import { Effect } from "effect"
import type { Metrics, PortError, Transaction } from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import { attemptsOf, type DeliveryRow, type RegistrationRow } from "../rows/tables.ts"
import { type DeliveryAttempt, nextAttemptOf, scheduleAttempt } from "./delivery-attempt.ts"
import { isGone, type Outcome, outcomeOf } from "./retry-schedule.ts"
import type { EndedAttempt } from "./send-attempt.ts"

/** The number of latest attempts that are kept of a delivery. */
const maxAttemptsKept = 20

/**
 * The webhook's state after the attempt. Any success makes it active again, that of a test, too.
 */
const stateAfter = (row: RegistrationRow, { attempt, endedMs }: EndedAttempt) => {
  const last_delivery_at = new Date(endedMs)
  if (attempt.error === null)
    return { status: "active", last_delivery_at, last_error: null, failing_since: null } as const
  const failing_since = row.failing_since ?? last_delivery_at
  const status = isGone(attempt.status_code, failing_since.getTime(), endedMs)
    ? "disabled"
    : row.status
  return { status, last_delivery_at, last_error: attempt.error, failing_since } as const
}

const withAttempt = (delivery: DeliveryRow, { attempt }: EndedAttempt): string =>
  JSON.stringify([...attemptsOf(delivery), attempt].slice(-maxAttemptsKept))

const isSameAttempt = (attempt: DeliveryAttempt, row: DeliveryRow): boolean =>
  row.round === attempt.round && row.tries === attempt.tries

export const isAttemptDue = (
  attempt: DeliveryAttempt,
  row: DeliveryRow | undefined,
): row is DeliveryRow => row !== undefined && row.state === "pending" && isSameAttempt(attempt, row)

/** Ends the delivery, or schedules its next attempt. */
const advance = (
  { database, queue, clock }: WebhookDeps,
  delivery: DeliveryRow,
  ended: EndedAttempt,
  outcome: Outcome,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const next =
      outcome.state === "pending"
        ? { tries: delivery.tries + 1, atMs: ended.endedMs + outcome.waitMs }
        : undefined
    const stored = {
      state: outcome.state,
      tries: delivery.tries + 1,
      next_attempt_at: next ? new Date(next.atMs) : null,
      attempts: withAttempt(delivery, ended),
    }
    yield* makeDeliveryRows(database).record(delivery.id, stored, tx)
    if (next)
      yield* scheduleAttempt(
        queue,
        nextAttemptOf({ ...delivery, ...next }),
        Math.max(0, next.atMs - clock.nowMs()),
        tx,
      )
  })

/** Made at the start, so that it is there before the first attempt. */
export const attemptCounter = (metrics: Metrics) =>
  metrics.counter(
    "rakit_webhook_attempts_total",
    "Attempts to deliver an event to a webhook, by what became of its delivery: succeeded, pending (tried again) or giveup.",
    ["outcome"],
  )

/**
 * Records how an attempt ended and moves the delivery and its webhook on, in one transaction.
 * When the delivery has gone on meanwhile (redelivered, given up), the attempt is recorded, but
 * nothing follows from it.
 */
export const recordAttempt = (
  deps: WebhookDeps,
  attempt: DeliveryAttempt,
  ended: EndedAttempt,
): Effect.Effect<void, PortError> => {
  const { database, random, metrics, log } = deps
  const registrations = makeRegistrationRows(database)
  const deliveries = makeDeliveryRows(database)
  const attempts = attemptCounter(metrics)
  const outcomeFor = ({ tries, round_at, once }: DeliveryRow): Outcome =>
    outcomeOf(
      { tries, beganMs: round_at.getTime(), once },
      ended.attempt.error === null,
      ended.endedMs,
      random,
    )
  return database.transaction((tx) =>
    Effect.gen(function* () {
      // locked in the order of a webhook's deletion: the webhook first
      const registration = yield* registrations.lock(attempt.webhook, tx)
      const delivery = yield* deliveries.lock(attempt.delivery, tx)
      if (!registration || !delivery) return
      const after = stateAfter(registration, ended)
      const isDisabled = after.status === "disabled"
      const outcome = isDisabled ? ({ state: "giveup" } as const) : outcomeFor(delivery)
      // a success counts also when the delivery was given up meanwhile
      const isCurrent =
        isSameAttempt(attempt, delivery) &&
        (delivery.state === "pending" || outcome.state === "succeeded")
      if (isCurrent) yield* advance(deps, delivery, ended, outcome, tx)
      else yield* deliveries.record(delivery.id, { attempts: withAttempt(delivery, ended) }, tx)
      yield* registrations.update(registration.id, after, tx)
      attempts.add(1, { outcome: outcome.state })
      // a redelivery to a webhook that was disabled before does not disable it anew
      if (!isDisabled || registration.status === "disabled") return
      yield* deliveries.giveUpAll(registration.id, tx)
      log.info("webhook.disabled", "a webhook was disabled", { webhook: registration.id })
    }),
  )
}
