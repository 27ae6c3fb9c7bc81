import { Schema, SchemaTransformation } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import { fileField } from "../../core/ports/endpoint.ts"

export const formats = ["json", "text", "srt", "verbose_json", "vtt"] as const
export type Format = (typeof formats)[number]

const maxPromptCharacters = 2_000

/** A file: as base64 or a data URI in JSON, as it is in a form. */
export type Source = string | Uint8Array

const isSource = (value: unknown): value is Source =>
  typeof value === "string" || value instanceof Uint8Array

const Source = Schema.declare(isSource, {
  message: "must be an audio file in base64, or a data URI of one",
  toCodecJson: () =>
    Schema.link<Source>()(
      Schema.String,
      SchemaTransformation.transform({
        decode: (text: string): Source => text,
        encode: (source) =>
          typeof source === "string" ? source : Buffer.from(source).toString("base64"),
      }),
    ),
})

const fields = {
  model: Schema.NonEmptyString,
  language: optional(
    Schema.String.check(
      Schema.isPattern(/^[a-z]{2,3}$/, { message: "must be a code of ISO 639, such as id or en" }),
    ),
  ).annotate({ description: "What is spoken; the model finds it out where this is absent." }),
  prompt: optional(Schema.String.check(atMostCharacters(maxPromptCharacters))).annotate({
    description: "Text before the audio: names, spelling, style.",
  }),
  response_format: optional(
    Schema.Literals(formats).annotate({ message: `must be one of ${formats.join(", ")}` }),
  ).annotate({ default: "json" }),
  temperature: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))).annotate(
    { default: 0 },
  ),
  timestamp_granularities: optional(
    Schema.Array(Schema.Literals(["segment", "word"])).check(Schema.isMaxLength(2)),
  ).annotate({ description: "`segment` only, and only with verbose_json." }),
  stream: optional(Schema.Boolean).annotate({ default: false }),
  user: optional(Schema.String.check(atMostCharacters(512))),
}

/** The body of `POST /v1/audio/transcriptions`. An explicit null counts as absent. */
export const TranscriptionBody = Schema.Struct({
  file: Source.annotate({ description: "A WAV or MP3 file in base64, or a data URI of one." }),
  ...fields,
}).annotate({ identifier: "TranscriptionRequest" })
export type TranscriptionBody = typeof TranscriptionBody.Type

export const TranscriptionForm = Schema.Struct({
  file: fileField.annotate({ description: "A WAV or MP3 file of at most 25 MB." }),
  ...fields,
}).annotate({ identifier: "TranscriptionForm" })

const Usage = Schema.Struct({
  type: Schema.Literal("duration"),
  seconds: Schema.Int.annotate({ description: "Seconds of audio, rounded up: what is charged." }),
  cost_idr: Schema.Finite,
}).annotate({ identifier: "TranscriptionUsage" })
export type TranscriptionUsage = typeof Usage.Type

const Segment = Schema.Struct({
  id: Schema.Int,
  start: Schema.Finite,
  end: Schema.Finite,
  text: Schema.String,
  temperature: Schema.optionalKey(Schema.Finite),
  avg_logprob: Schema.optionalKey(Schema.Finite),
  compression_ratio: Schema.optionalKey(Schema.Finite),
  no_speech_prob: Schema.optionalKey(Schema.Finite),
}).annotate({ identifier: "TranscriptionSegment" })
export type Segment = typeof Segment.Type

/** Fields other than `text` and `usage` come with verbose_json. */
export const TranscriptionReply = Schema.Struct({
  text: Schema.String,
  task: Schema.optionalKey(Schema.Literal("transcribe")),
  language: Schema.optionalKey(Schema.String),
  duration: Schema.optionalKey(Schema.Finite),
  segments: Schema.optionalKey(Schema.Array(Segment)),
  usage: Usage,
}).annotate({ identifier: "Transcription" })

export const TranscriptionEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("transcript.text.delta"),
    delta: Schema.String,
  }).annotate({ identifier: "TranscriptTextDeltaEvent" }),
  Schema.Struct({
    type: Schema.Literal("transcript.text.done"),
    text: Schema.String,
    usage: Usage,
  }).annotate({ identifier: "TranscriptTextDoneEvent" }),
])
