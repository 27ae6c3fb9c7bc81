import { Effect, Schema } from "effect"

export const Settings = Schema.Struct({
  /** Most keys in memory. Beyond it the key that was idle longest is dropped, and its counts start again at zero. */
  maxKeys: Schema.Int.check(Schema.isGreaterThan(0))
    .annotate({ default: 10_000 })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(10_000))),
})

export type Settings = typeof Settings.Type
