import { Effect, Stream } from "effect"
import { concat } from "../../core/concat.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { TranscribeEvent, TranscribeRequest } from "../../core/ports/audio.ts"
import {
  type Call,
  defineEndpoint,
  megabyte,
  type Plan,
  type Reply,
} from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { readAudio } from "./audio-decoding.ts"
import { readTranscriptionForm } from "./form-decoding.ts"
import { refusalOf } from "./refused-fields.ts"
import {
  type Piece,
  type Transcript,
  textOf,
  textTypes,
  toText,
  toVerbose,
  usageNow,
} from "./reply-encoding.ts"
import {
  type Format,
  TranscriptionBody,
  TranscriptionEvent,
  TranscriptionForm,
  TranscriptionReply,
} from "./schema.ts"

export interface TranscriptionDeps {
  readonly catalogue: Catalogue
  /** How long the audio of one file may be. */
  readonly maxSeconds: number
}

type Events = Stream.Stream<TranscribeEvent, ApiError>

const timed: readonly Format[] = ["verbose_json", "srt", "vtt"]

const notWhole = () => apiError("backend_error", "The model stopped before the end.")

const transcriptOf = (events: Events): Effect.Effect<Transcript, ApiError> =>
  Effect.gen(function* () {
    const all = yield* Stream.runCollect(events)
    const last = all.at(-1)
    if (last?.type !== "finish") return yield* notWhole()
    return { pieces: all.filter((event) => event.type === "text"), language: last.language }
  })

const whole = (
  call: Call<TranscriptionBody>,
  model: string,
  events: Events,
): Effect.Effect<Reply, ApiError> =>
  Effect.map(transcriptOf(events), (found): Reply => {
    const { response_format: format, language } = call.body
    const transcript = { ...found, language: found.language ?? language ?? undefined }
    const usage = usageNow(call, model)
    if (format == null || format === "json")
      return { status: 200, json: { text: textOf(transcript), usage } }
    if (format === "verbose_json") return { status: 200, json: toVerbose(transcript, usage) }
    const bytes = Buffer.from(toText(transcript, format))
    return { status: 200, bytes: Stream.succeed(bytes), mediaType: textTypes[format] }
  })

const streamed = (call: Call<TranscriptionBody>, model: string, events: Events): Reply => {
  const pieces: Piece[] = []
  let isDone = false
  const encode = (event: TranscribeEvent): Json => {
    if (event.type === "text") {
      // the first word has no space before it, as in the whole text
      const delta = pieces.length === 0 ? event.text.trimStart() : event.text
      pieces.push(event)
      return { type: "transcript.text.delta", delta }
    }
    isDone = true
    const usage = usageNow(call, model)
    return { type: "transcript.text.done", text: textOf({ pieces }), usage }
  }
  const end = Stream.fromEffectDrain(Effect.suspend(() => (isDone ? Effect.void : notWhole())))
  return { status: 200, events: concat(Stream.map(events, encode), end) }
}

const plan = (
  { catalogue, maxSeconds }: TranscriptionDeps,
  call: Call<TranscriptionBody>,
): Effect.Effect<Plan, ApiError> =>
  Effect.gen(function* () {
    const { body, context } = call
    const entry = yield* catalogue.require("transcribe", body.model)
    const audio = yield* readAudio(body.file, maxSeconds)
    const { task } = yield* catalogue.open("transcribe", entry.id)
    const request: TranscribeRequest = {
      ...audio,
      temperature: body.temperature ?? 0,
      segments: timed.includes(body.response_format ?? "json"),
      ...(body.language != null && { language: body.language }),
      ...(body.prompt != null && body.prompt !== "" && { prompt: body.prompt }),
    }
    const { bound, run } = yield* task.plan(request, context)
    return {
      bound: { [entry.id]: bound },
      run:
        body.stream === true
          ? Effect.sync(() => streamed(call, entry.id, run))
          : whole(call, entry.id, run),
    }
  })

export const makeTranscriptionEndpoint = (deps: TranscriptionDeps) =>
  defineEndpoint<TranscriptionBody>({
    id: "audio.transcriptions",
    summary: "What is said in an audio file, as text, with times, or as a stream.",
    method: "POST",
    path: "/v1/audio/transcriptions",
    access: "key",
    body: TranscriptionBody,
    // a file of 25 MB in base64, and the fields beside it
    maxBodyBytes: 34 * megabyte,
    form: TranscriptionForm,
    readForm: readTranscriptionForm,
    refuses: refusalOf,
    reply: TranscriptionReply,
    event: TranscriptionEvent,
    creates: true,
    plan: (call) => plan(deps, call),
  })
