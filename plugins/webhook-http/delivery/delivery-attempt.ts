import { Effect, Schema } from "effect"
import type { JobHandler, PortError, Queue, Transaction } from "../../../core/index.ts"
import type { DeliveryRow } from "../rows/tables.ts"

/** The job of making one attempt of a delivery. Void when the delivery has gone on since. */
export const DeliveryAttempt = Schema.Struct({
  delivery: Schema.String,
  /** Deliveries to one webhook wait for each other, not for those to others. */
  webhook: Schema.String,
  round: Schema.Int,
  tries: Schema.Int,
  /** How often it was deferred because its webhook was busy. */
  deferred: Schema.Int,
})
export type DeliveryAttempt = typeof DeliveryAttempt.Type

/**
 * The part of the job handler that a sender needs. `attempts` counts crashes: the retry schedule of
 * webhooks is in retry-schedule.ts.
 */
export const deliveryTerms = {
  name: "webhook-delivery",
  codec: DeliveryAttempt,
  leaseMs: 30_000,
  attempts: 30,
} as const

type Identity = Pick<DeliveryAttempt, "delivery" | "round" | "tries">
const keyWith = ({ delivery, round, tries }: Identity, parity: number): string =>
  `${delivery}/${round}/${tries}/${parity}`

/**
 * A deferred attempt is sent while the job before it still holds its key, so it alternates between
 * two keys.
 */
export const attemptKey = (attempt: DeliveryAttempt): string =>
  keyWith(attempt, attempt.deferred % 2)

/** Both keys that the jobs of one attempt can have. */
export const attemptKeys = (attempt: Identity): readonly string[] => [
  keyWith(attempt, 0),
  keyWith(attempt, 1),
]

export const nextAttemptOf = ({
  id,
  webhook_id,
  round,
  tries,
}: Pick<DeliveryRow, "id" | "webhook_id" | "round" | "tries">): DeliveryAttempt => ({
  delivery: id,
  webhook: webhook_id,
  round,
  tries,
  deferred: 0,
})

export const scheduleAttempt = (
  queue: Queue,
  attempt: DeliveryAttempt,
  delayMs: number,
  tx?: Transaction,
): Effect.Effect<void, PortError> => {
  const handler: JobHandler<DeliveryAttempt> = {
    ...deliveryTerms,
    concurrency: 1,
    run: () => Effect.void,
  }
  return queue.send(handler, attempt, { key: attemptKey(attempt), delayMs }, tx)
}
