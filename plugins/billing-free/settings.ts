import { Effect, Schema } from "effect"

export const Settings = Schema.Struct({
  /** Keys remembered at once. Beyond it the one that was idle longest is forgotten, and its day starts anew. */
  maxKeys: Schema.Int.check(Schema.isGreaterThan(0))
    .annotate({ default: 10_000 })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(10_000))),
})

export type Settings = typeof Settings.Type
