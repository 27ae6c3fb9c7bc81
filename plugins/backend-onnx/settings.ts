import { Effect, Schema } from "effect"

const count = (least: number, most: number, byDefault: number, description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most }))
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

/** The plugin's settings in the config file. */
export const OnnxSettings = Schema.Struct({
  threads: count(
    1,
    64,
    2,
    "Threads of ONNX Runtime for each open model file; engines of a sentence encoder share them.",
  ),
  slots: count(
    1,
    64,
    16,
    "Requests that a model works on side by side; embeddings take none, image models have an option.",
  ),
  queue: count(
    0,
    10_000,
    64,
    "Requests that may wait for a slot of a model, and as many lines of batches; more are refused with backend_busy.",
  ),
  kvMemoryMb: count(
    1,
    1_048_576,
    2_048,
    "Memory for keys and values of the requests that a chat model works on; a request is admitted when its worst case fits.",
  ),
  prefixCacheMb: count(
    0,
    1_048_576,
    512,
    "Memory in which a chat model keeps the beginnings of texts, so that they are not read again.",
  ),
  adapterMemoryMb: count(
    1,
    1_048_576,
    1_024,
    "Memory of the adapters of a chat or image model; a model whose adapters take more is not opened.",
  ),
  speculation: Schema.Boolean.annotate({
    default: true,
    description: "Guess tokens from what was said before while a single answer is written.",
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
})
export type OnnxSettings = typeof OnnxSettings.Type
