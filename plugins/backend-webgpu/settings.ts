import { Effect, Schema } from "effect"

const count = (least: number, most: number, byDefault: number, description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most }))
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

/** The plugin's settings in the config file. */
export const WebgpuSettings = Schema.Struct({
  allowSoftware: Schema.Boolean.annotate({
    default: false,
    description:
      "Take a software adapter (SwiftShader, lavapipe), too: for tests, as it is far slower than the CPU.",
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  driver: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isMaxLength(4_096)).annotate({
      description:
        "Path of the manifest of a Vulkan driver (a JSON file), where the loader shall look at no other.",
    }),
  ),
  restarts: count(
    0,
    1_000,
    1,
    "How often within an hour the device's process is started again after it ended; then the CPU serves.",
  ),
  hangSeconds: count(
    1,
    3_600,
    120,
    "A device's process that says nothing for so long is killed; one that opens a model has an hour.",
  ),
})
export type WebgpuSettings = typeof WebgpuSettings.Type
