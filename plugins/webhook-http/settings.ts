import { Schema } from "effect"
import { setting } from "../../core/index.ts"

const count = (value: number, most: number, description: string) =>
  setting(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most })), value, description)

export const Settings = Schema.Struct({
  style: setting(
    Schema.Literals(["svc", "standard"]),
    "svc",
    "`svc`: the header Svc-Signature. `standard`: webhook-id, webhook-timestamp and webhook-signature, as Standard Webhooks defines them.",
  ),
  perWebhook: count(4, 100, "Concurrent deliveries to one webhook, from one process."),
  atOnce: count(500, 5_000, "Deliveries of one process that run or wait for their webhook."),
  keepDays: count(30, 3_650, "How long deliveries can be listed."),
})
export type Settings = typeof Settings.Type
