import { Effect, Option } from "effect"
import { type JobHandler, PortError, type WhenStarted } from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import { sendTicket, type Ticket, ticketJob } from "./delivery-attempt.ts"
import { makeWebhookGate, type WebhookGateOptions } from "./fair-limiter.ts"
import { isTicketOf, recordAttempt } from "./record-attempt.ts"
import { isOver } from "./retry-schedule.ts"
import { attemptDelivery } from "./send-attempt.ts"

const shortestDeferMs = 1_000
const longestDeferMs = 60_000

/** Again and again a little later, so that a long line before one webhook costs little. */
const deferMs = (deferred: number, random: () => number): number =>
  Math.round(Math.min(shortestDeferMs * 2 ** deferred, longestDeferMs) * (0.5 + random()))

const deliver = (deps: WebhookDeps, ticket: Ticket): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const deliveries = makeDeliveryRows(deps.database)
    const delivery = yield* deliveries.find(ticket.delivery)
    if (!isTicketOf(ticket, delivery)) return
    const registration = yield* makeRegistrationRows(deps.database).find(delivery.webhook_id)
    const round = {
      tries: delivery.tries,
      beganMs: delivery.round_at.getTime(),
      once: delivery.once,
    }
    if (!registration || isOver(round, deps.clock.nowMs()))
      return yield* deliveries.giveUp(delivery.id)
    yield* recordAttempt(deps, ticket, yield* attemptDelivery(deps, registration, delivery))
  })

/** One attempt of one delivery. Each further attempt is a ticket of its own, so the waits are ours and the queue's own retries are for crashes. */
export const makeDeliveryHandler = (
  started: WhenStarted<WebhookDeps>,
  places: WebhookGateOptions,
): JobHandler<Ticket> => {
  const gate = makeWebhookGate(places)
  return {
    ...ticketJob,
    concurrency: places.atOnce,
    run: (ticket) =>
      Effect.gen(function* () {
        const deps = yield* Effect.mapError(
          started,
          ({ message }) => new PortError({ port: "webhook", message }),
        )
        const entered = yield* gate(ticket.webhook, deliver(deps, ticket))
        if (Option.isSome(entered)) return
        yield* sendTicket(
          deps.queue,
          { ...ticket, deferred: ticket.deferred + 1 },
          deferMs(ticket.deferred, deps.random),
        )
      }),
  }
}
