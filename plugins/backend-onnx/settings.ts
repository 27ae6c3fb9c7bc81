import { Effect, Schema } from "effect"

const count = (least: number, most: number, byDefault: number, description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most }))
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

/** The plugin's settings in the config file. */
export const OnnxSettings = Schema.Struct({
  threads: count(1, 64, 2, "Threads of ONNX Runtime for each open model file."),
  slots: count(1, 64, 4, "Requests that a model works on side by side."),
  queue: count(0, 10_000, 64, "Requests that may wait for a slot of a model; more are refused with backend_busy."),
})
export type OnnxSettings = typeof OnnxSettings.Type
