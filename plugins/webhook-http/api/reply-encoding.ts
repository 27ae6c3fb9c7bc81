import { attemptsOf, type DeliveryRow, type RegistrationRow } from "../rows/tables.ts"
import type { Delivery, WebhookReply } from "./schema.ts"

const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
const secondsOrNull = (at: Date | null): number | null => at && seconds(at)

export const toWebhook = (row: RegistrationRow): WebhookReply => ({
  id: row.id,
  object: "webhook",
  url: row.url,
  events: row.events,
  description: row.description,
  status: row.status,
  last_delivery_at: secondsOrNull(row.last_delivery_at),
  last_error: row.last_error,
  created_at: seconds(row.created_at),
})

export const toDelivery = (row: DeliveryRow): Delivery => ({
  id: row.id,
  object: "webhook.delivery",
  event: row.event,
  status: row.state,
  request_body: row.body,
  attempts: attemptsOf(row),
  next_attempt_at: secondsOrNull(row.next_attempt_at),
})
