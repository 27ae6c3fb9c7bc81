import { Effect, Schema } from "effect"

const withDefault = (byDefault: number, least: number, most: number, description: string) =>
  Schema.Finite.check(Schema.isBetween({ minimum: least, maximum: most }))
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

export const ChatSettings = Schema.Struct({
  framesPerSecond: withDefault(
    1,
    0.1,
    10,
    "Frames that are taken of each second of a video in messages.",
  ),
  maxFrames: withDefault(
    16,
    1,
    64,
    "Frames that are taken of a video at most; of a longer one they are spread evenly.",
  ),
  maxVideoSeconds: withDefault(600, 1, 7_200, "Longer videos are refused."),
})
export type ChatSettings = typeof ChatSettings.Type
