import { Effect, Schema } from "effect"
import type { JobHandler, PortError, Queue, Transaction } from "../../../core/index.ts"
import type { DeliveryRow } from "../api/reply-encoding.ts"

/** The right to make one attempt. Void when the delivery has gone on since. */
export const Ticket = Schema.Struct({
  delivery: Schema.String,
  /** Deliveries to one webhook wait for each other, not for those to others. */
  webhook: Schema.String,
  round: Schema.Int,
  tries: Schema.Int,
  /** How often it had to come back because its webhook was busy. */
  deferred: Schema.Int,
})
export type Ticket = typeof Ticket.Type

/** The part of the job handler that a sender needs. */
export const ticketJob = {
  name: "webhook-delivery",
  codec: Ticket,
  leaseMs: 30_000,
  attempts: 30,
} as const

type Turn = Pick<Ticket, "delivery" | "round" | "tries">
const turnKey = ({ delivery, round, tries }: Turn, parity: number): string =>
  `${delivery}/${round}/${tries}/${parity}`

/** A ticket that comes back later is sent while the one before it runs, so it needs the other of two keys. */
export const keyOf = (ticket: Ticket): string => turnKey(ticket, ticket.deferred % 2)

/** All keys that the tickets of one attempt can have. */
export const keysOf = (turn: Turn): readonly string[] => [turnKey(turn, 0), turnKey(turn, 1)]

/** The one of the attempt that a delivery stands before. */
export const ticketOf = ({
  id,
  webhook_id,
  round,
  tries,
}: Pick<DeliveryRow, "id" | "webhook_id" | "round" | "tries">): Ticket => ({
  delivery: id,
  webhook: webhook_id,
  round,
  tries,
  deferred: 0,
})

export const sendTicket = (
  queue: Queue,
  ticket: Ticket,
  delayMs: number,
  tx?: Transaction,
): Effect.Effect<void, PortError> => {
  const handler: JobHandler<Ticket> = { ...ticketJob, concurrency: 1, run: () => Effect.void }
  return queue.send(handler, ticket, { key: keyOf(ticket), delayMs }, tx)
}
