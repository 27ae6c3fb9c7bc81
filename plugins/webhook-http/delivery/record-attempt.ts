import { Effect } from "effect"
import type { PortError, Transaction } from "../../../core/index.ts"
import { attemptsOf, type DeliveryRow, type RegistrationRow } from "../api/reply-encoding.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import { sendTicket, type Ticket, ticketOf } from "./delivery-attempt.ts"
import { isGone, type Verdict, verdictOf } from "./retry-schedule.ts"
import type { Ended } from "./send-attempt.ts"

/** Of one delivery, the latest. */
const maxAttemptsKept = 20

/** What the webhook shows from now on. A success makes it active again, also that of a test. */
const stateAfter = (row: RegistrationRow, { attempt, endedMs }: Ended) => {
  const last_delivery_at = new Date(endedMs)
  if (attempt.error === null)
    return { status: "active", last_delivery_at, last_error: null, failing_since: null } as const
  const failing_since = row.failing_since ?? last_delivery_at
  const status = isGone(attempt.status_code, failing_since.getTime(), endedMs)
    ? "disabled"
    : row.status
  return { status, last_delivery_at, last_error: attempt.error, failing_since } as const
}

const withAttempt = (delivery: DeliveryRow, { attempt }: Ended): string =>
  JSON.stringify([...attemptsOf(delivery), attempt].slice(-maxAttemptsKept))

const isTurnOf = (ticket: Ticket, row: DeliveryRow): boolean =>
  row.round === ticket.round && row.tries === ticket.tries

export const isTicketOf = (ticket: Ticket, row: DeliveryRow | undefined): row is DeliveryRow =>
  row !== undefined && row.state === "pending" && isTurnOf(ticket, row)

/** The delivery moves: to its end, or to the next attempt with a ticket for it. */
const moveOn = (
  { database, queue, clock }: WebhookDeps,
  delivery: DeliveryRow,
  ended: Ended,
  verdict: Verdict,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const next =
      verdict.state === "pending"
        ? { tries: delivery.tries + 1, atMs: ended.endedMs + verdict.waitMs }
        : undefined
    const outcome = {
      state: verdict.state,
      tries: delivery.tries + 1,
      next_attempt_at: next ? new Date(next.atMs) : null,
      attempts: withAttempt(delivery, ended),
    }
    yield* makeDeliveryRows(database).record(delivery.id, outcome, tx)
    if (next)
      yield* sendTicket(
        queue,
        ticketOf({ ...delivery, ...next }),
        Math.max(0, next.atMs - clock.nowMs()),
        tx,
      )
  })

/** Writes down how an attempt ended, and what follows from it, all or nothing. When the delivery has gone on meanwhile (redelivered, given up), it was an attempt all the same, but nothing follows. */
export const recordAttempt = (
  deps: WebhookDeps,
  ticket: Ticket,
  ended: Ended,
): Effect.Effect<void, PortError> => {
  const { database, random, metrics, log } = deps
  const registrations = makeRegistrationRows(database)
  const deliveries = makeDeliveryRows(database)
  const attempts = metrics.counter(
    "rakit_webhook_attempts_total",
    "Attempts to deliver an event to a webhook.",
    ["outcome"],
  )
  const verdictOn = ({ tries, round_at, once }: DeliveryRow): Verdict =>
    verdictOf(
      { tries, beganMs: round_at.getTime(), once },
      ended.attempt.error === null,
      ended.endedMs,
      random,
    )
  return database.transaction((tx) =>
    Effect.gen(function* () {
      // the webhook first, as its deletion does
      const registration = yield* registrations.lock(ticket.webhook, tx)
      const delivery = yield* deliveries.lock(ticket.delivery, tx)
      if (!registration || !delivery) return
      const after = stateAfter(registration, ended)
      const isDisabled = after.status === "disabled"
      const verdict = isDisabled ? ({ state: "giveup" } as const) : verdictOn(delivery)
      // a success counts also when the delivery was given up meanwhile
      const isCurrent =
        isTurnOf(ticket, delivery) &&
        (delivery.state === "pending" || verdict.state === "succeeded")
      if (isCurrent) yield* moveOn(deps, delivery, ended, verdict, tx)
      else yield* deliveries.record(delivery.id, { attempts: withAttempt(delivery, ended) }, tx)
      yield* registrations.note(registration.id, after, tx)
      attempts.add(1, { outcome: verdict.state })
      // what is sent again to one that is disabled already is tried all the same
      if (!isDisabled || registration.status === "disabled") return
      yield* deliveries.giveUpAll(registration.id, tx)
      log.info("webhook.disabled", "a webhook was disabled", { webhook: registration.id })
    }),
  )
}
