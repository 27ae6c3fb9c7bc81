import { Effect, Schedule } from "effect"
import type { Log, Mail, Metrics, PortError, Secrets } from "../../core/index.ts"
import type { Delivery, DeliveryFailed } from "./delivery.ts"
import type { ClaimedMail, OutboxRows } from "./outbox-rows.ts"

const maxAttempts = 6
const firstWaitMs = 15_000
const longestWaitMs = 40 * 60_000

/**
 * Retry policy: 15 s, 1, 4, 16 and 40 minutes, each up to a fifth longer; six attempts in about an
 * hour. `random` returns 0 to 1.
 */
export const waitAfterMs = (attempts: number, random: () => number): number =>
  Math.min(longestWaitMs, firstWaitMs * 4 ** (attempts - 1)) * (1 + random() / 5)

export interface AttemptDeps {
  readonly rows: OutboxRows
  readonly secrets: Secrets
  readonly delivery: Delivery
  readonly log: Log
  readonly metrics: Metrics
  readonly random: () => number
}

/** After a delivery the row must go: if it stayed, the mail would be sent again. */
const removalRetries = { times: 4, schedule: Schedule.exponential("200 millis") }

export const makeAttempt = ({
  rows,
  secrets,
  delivery,
  log,
  metrics,
  random,
}: AttemptDeps): ((claimed: ClaimedMail) => Effect.Effect<void, PortError>) => {
  const counter = metrics.counter(
    "rakit_mails_total",
    "Attempts to deliver a mail, by how they ended.",
    ["outcome"],
  )
  const giveUp = (claimed: ClaimedMail, reason: string) =>
    Effect.map(rows.giveUp(claimed), () => {
      counter.add(1, { outcome: "given_up" })
      log.error("mail.given_up", "a mail was given up", {
        mail: claimed.id,
        attempts: claimed.attempts,
        reason,
      })
    })
  const failed = (claimed: ClaimedMail, { reason, isPermanent }: DeliveryFailed) => {
    if (isPermanent || claimed.attempts >= maxAttempts) return giveUp(claimed, reason)
    const waitMs = Math.round(waitAfterMs(claimed.attempts, random))
    return Effect.map(rows.retry(claimed, waitMs), () => {
      counter.add(1, { outcome: "retried" })
      log.warn("mail.delivery_failed", "a mail could not be delivered and will be tried again", {
        mail: claimed.id,
        attempts: claimed.attempts,
        waitMs,
        reason,
      })
    })
  }
  const done = (claimed: ClaimedMail, outcome: "delivered" | "written" | "dropped") =>
    Effect.map(Effect.retry(rows.remove(claimed), removalRetries), () => {
      counter.add(1, { outcome })
      log.debug("mail.sent", "a mail has left the outbox", {
        mail: claimed.id,
        attempts: claimed.attempts,
        outcome,
      })
    })
  return (claimed) =>
    Effect.suspend(() => {
      const content = secrets.decrypt(claimed.content)
      if (content === undefined) return giveUp(claimed, "its content can't be opened")
      // the process that made the last attempt died in it
      if (claimed.attempts > maxAttempts) return giveUp(claimed, "no attempt came to an end")
      const mail = JSON.parse(content) as Mail
      return delivery.deliver({ id: claimed.id, mail, createdMs: claimed.createdMs }).pipe(
        Effect.matchEffect({
          onFailure: (failure) => failed(claimed, failure),
          onSuccess: (outcome) => done(claimed, outcome),
        }),
      )
    })
}
