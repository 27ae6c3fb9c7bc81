import { Effect, Schema } from "effect"

const days = 30

export const Settings = Schema.Struct({
  /** How long a key signs. Session keys are accepted for 25 hours more, receipt keys forever. */
  rotateDays: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_650 }))
    .annotate({ default: days })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(days))),
})
export type Settings = typeof Settings.Type
