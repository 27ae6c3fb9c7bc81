import { Schema } from "effect"
import { atMostCharacters, hasHiddenCharacters, optional } from "../../../core/index.ts"

/** The events that a webhook can subscribe to. `webhook.test` is sent on request only. */
export const knownEvents = ["batch.completed", "batch.failed"] as const
export const maxUrlLength = 2048
export const maxDescription = 500

const isEventList = Schema.makeFilter((events: readonly string[]) => {
  if (events.length === 0) return "must name at least one event"
  if (new Set(events).size !== events.length) return "must not name an event twice"
  return (
    events.every((event) => knownEvents.some((known) => known === event)) ||
    `must be some of ${knownEvents.join(", ")}`
  )
})

/** A description may have several lines. */
const isReadable = Schema.makeFilter(
  (text: string) =>
    !hasHiddenCharacters(text.replace(/[\t\r\n]/g, " ")) ||
    "must not hold control or invisible characters",
)

export const CreateWebhook = Schema.Struct({
  url: Schema.String.check(atMostCharacters(maxUrlLength)).annotate({
    description: "https, to a public address.",
  }),
  events: Schema.Array(Schema.String)
    .check(isEventList)
    .annotate({ description: knownEvents.join(", ") }),
  description: optional(Schema.String.check(atMostCharacters(maxDescription), isReadable)),
}).annotate({
  identifier: "CreateWebhook",
  examples: [{ url: "https://example.com/hooks", events: ["batch.completed"] }],
})
export type CreateWebhook = typeof CreateWebhook.Type

const fields = {
  id: Schema.String,
  object: Schema.Literal("webhook"),
  url: Schema.String,
  events: Schema.Array(Schema.String),
  description: Schema.NullOr(Schema.String),
  status: Schema.Literals(["active", "disabled"]),
  last_delivery_at: Schema.NullOr(Schema.Int).annotate({
    description: "When the last attempt of any delivery ended, in Unix seconds.",
  }),
  last_error: Schema.NullOr(Schema.String).annotate({
    description: "Of that attempt; null after a success.",
  }),
  created_at: Schema.Int,
}
export const WebhookReply = Schema.Struct(fields).annotate({ identifier: "Webhook" })
export type WebhookReply = typeof WebhookReply.Type

export const NewWebhookReply = Schema.Struct({
  ...fields,
  secret: Schema.String.annotate({ description: "whsec_...: shown this once." }),
}).annotate({ identifier: "NewWebhook" })

export const DeletedWebhook = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("webhook"),
  deleted: Schema.Literal(true),
}).annotate({ identifier: "DeletedWebhook" })

const Attempt = Schema.Struct({
  at: Schema.Int.annotate({ description: "When it began, in Unix seconds." }),
  status_code: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
  duration_ms: Schema.Int,
  response_body: Schema.NullOr(Schema.String).annotate({
    description: "Its first 4,096 bytes; null when nobody answered.",
  }),
}).annotate({ identifier: "WebhookAttempt" })

export const Delivery = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("webhook.delivery"),
  event: Schema.String,
  status: Schema.Literals(["pending", "succeeded", "giveup"]),
  request_body: Schema.String.annotate({ description: "The exact text that was signed and sent." }),
  attempts: Schema.Array(Attempt),
  next_attempt_at: Schema.NullOr(Schema.Int),
}).annotate({ identifier: "WebhookDelivery" })
export type Delivery = typeof Delivery.Type
