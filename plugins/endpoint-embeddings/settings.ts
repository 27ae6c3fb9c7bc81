import { Effect, Schema } from "effect"

/** As the contract says, unless the operator sets more. */
export const defaultMaxInputs = 64

/** The plugin's settings in the config file. */
export const EmbeddingsSettings = Schema.Struct({
  maxInputs: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_048 }))
    .annotate({
      default: defaultMaxInputs,
      description: "Texts that a request may hold; the body may have 25 MB.",
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(defaultMaxInputs))),
})
export type EmbeddingsSettings = typeof EmbeddingsSettings.Type
