import { Effect } from "effect"
import type { PortError } from "../../core/index.ts"
import type { Ended } from "./attempt.ts"
import { type DeliveryRows, makeDeliveryRows } from "./delivery-rows.ts"
import type { WebhookHouse } from "./house.ts"
import { makeRegistrationRows } from "./registration-rows.ts"
import { isGone, type Verdict, verdictOf } from "./schedule.ts"
import { hostOf, sendTicket, type Ticket } from "./ticket.ts"
import { attemptsOf, type DeliveryRow, type RegistrationRow } from "./to-reply.ts"

/** Of one delivery, the latest. */
const maxAttemptsKept = 20

/** What the webhook shows from now on. A success makes it active again, also that of a test. */
const stateAfter = (row: RegistrationRow, { attempt, endedMs }: Ended) => {
  const last_delivery_at = new Date(endedMs)
  if (attempt.error === null) return { status: "active", last_delivery_at, last_error: null, failing_since: null } as const
  const failing_since = row.failing_since ?? last_delivery_at
  const status = isGone(attempt.status_code, failing_since.getTime(), endedMs) ? "disabled" : row.status
  return { status, last_delivery_at, last_error: attempt.error, failing_since } as const
}

const outcomeOf = (delivery: DeliveryRow, { attempt, endedMs }: Ended, verdict: Verdict): Parameters<DeliveryRows["record"]>[1] => ({
  state: verdict.state,
  tries: delivery.tries + 1,
  next_attempt_at: verdict.state === "pending" ? new Date(endedMs + verdict.waitMs) : null,
  attempts: JSON.stringify([...attemptsOf(delivery), attempt].slice(-maxAttemptsKept)),
})

export const isTicketOf = (ticket: Ticket, row: DeliveryRow | undefined): row is DeliveryRow =>
  row !== undefined && row.state === "pending" && row.round === ticket.round && row.tries === ticket.tries

/** Writes down how an attempt ended, and what follows from it, all or nothing. When the delivery has gone on meanwhile (deleted, redelivered), nothing. */
export const recordAttempt = (house: WebhookHouse, ticket: Ticket, webhook: string, ended: Ended): Effect.Effect<void, PortError> => {
  const { database, queue, clock, random, metrics, log } = house
  const registrations = makeRegistrationRows(database)
  const deliveries = makeDeliveryRows(database)
  const attempts = metrics.counter("rakit_webhook_attempts_total", "Attempts to deliver an event to a webhook.", ["outcome"])
  return database.transaction((tx) =>
    Effect.gen(function* () {
      // the webhook first, as its deletion does
      const registration = yield* registrations.lock(webhook, tx)
      const delivery = yield* deliveries.lock(ticket.delivery, tx)
      if (!registration || !isTicketOf(ticket, delivery)) return
      const round = { tries: delivery.tries, beganMs: delivery.round_at.getTime(), once: delivery.once }
      const after = stateAfter(registration, ended)
      const isDisabled = after.status === "disabled"
      const verdict = isDisabled ? ({ state: "giveup" } as const) : verdictOf(round, ended.attempt.error === null, ended.endedMs, random)
      const outcome = outcomeOf(delivery, ended, verdict)
      yield* deliveries.record(delivery.id, outcome, tx)
      yield* registrations.note(webhook, after, tx)
      if (isDisabled) yield* deliveries.giveUpAll(webhook, tx)
      attempts.add(1, { outcome: verdict.state })
      if (isDisabled && registration.status === "active") log.info("a webhook was disabled", { webhook })
      if (verdict.state !== "pending") return
      const next = { delivery: delivery.id, host: hostOf(registration.url), round: delivery.round, tries: outcome.tries, deferred: 0 }
      yield* sendTicket(queue, next, Math.max(0, ended.endedMs + verdict.waitMs - clock.nowMs()), tx)
    }),
  )
}
