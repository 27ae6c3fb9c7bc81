import { Effect, Schema } from "effect"

const count = (value: number, most: number) =>
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most }))
    .annotate({ default: value })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

const style = "svc" as const

export const Settings = Schema.Struct({
  /**
   * `svc`: the header Svc-Signature. `standard`: webhook-id, webhook-timestamp and
   * webhook-signature, as Standard Webhooks defines them.
   */
  style: Schema.Literals(["svc", "standard"])
    .annotate({ default: style })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(style))),
  /** Concurrent deliveries to one webhook, from one process. */
  perWebhook: count(4, 100),
  /** Deliveries of one process that run or wait for their webhook. */
  atOnce: count(500, 5_000),
  /** How long deliveries can be listed. */
  keepDays: count(30, 3_650),
})
export type Settings = typeof Settings.Type
