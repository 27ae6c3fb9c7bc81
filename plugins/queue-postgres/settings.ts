import { Effect, Schema } from "effect"

const pollMs = 500
const keepDeadDays = 30

export const Settings = Schema.Struct({
  /**
   * The delay with which jobs of other processes may be noticed. Jobs of this process, and delayed
   * jobs, begin at their time.
   */
  pollMs: Schema.Int.check(Schema.isBetween({ minimum: 50, maximum: 60_000 }))
    .annotate({ default: pollMs })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(pollMs))),
  /** How long dead letters are kept. */
  keepDeadDays: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_650 }))
    .annotate({ default: keepDeadDays })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(keepDeadDays))),
})
export type Settings = typeof Settings.Type
