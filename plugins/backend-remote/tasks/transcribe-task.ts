import { FormData } from "undici"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type {
  TranscribeEvent,
  TranscribeRequest,
  TranscriptSpan,
} from "../../../core/ports/audio.ts"
import type { Task } from "../../../core/ports/model.ts"
import { usageOf } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import type { RemoteModel } from "../remote-model.ts"
import { failure } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import { fieldsOf, planJson, reading } from "./json-task.ts"

const garbled = (message: string) => failure("garbled", message)

const mediaTypes = { wav: "audio/wav", mp3: "audio/mpeg" } as const

const formFor = (request: TranscribeRequest, { options }: Upstream): FormData => {
  const { audio, format, language, prompt, temperature, segments } = request
  const form = new FormData()
  const file = new Blob([new Uint8Array(audio)], { type: mediaTypes[format] })
  form.append("file", file, `audio.${format}`)
  form.append("model", options.model)
  form.append("response_format", segments ? "verbose_json" : "json")
  form.append("temperature", String(temperature))
  if (language !== undefined) form.append("language", language)
  if (prompt !== undefined) form.append("prompt", prompt)
  return form
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

const spanOf = (segment: ReturnType<typeof fieldsOf>): TranscriptSpan => {
  const [start, end] = [numberOf(segment.start), numberOf(segment.end)]
  if (start === undefined || end === undefined || start < 0 || end < start)
    throw garbled("a segment has no times")
  const more = {
    temperature: numberOf(segment.temperature),
    avgLogprob: numberOf(segment.avg_logprob),
    compressionRatio: numberOf(segment.compression_ratio),
    noSpeechProb: numberOf(segment.no_speech_prob),
  }
  const known = Object.entries(more).filter(([, value]) => value !== undefined)
  return { start, end, ...Object.fromEntries(known) }
}

const readTranscript = (answer: Json, request: TranscribeRequest): readonly TranscribeEvent[] => {
  const { text, segments, language } = fieldsOf(answer)
  if (typeof text !== "string") throw garbled("it sent no text")
  const finish: TranscribeEvent = {
    type: "finish",
    ...(typeof language === "string" && language !== "" && { language }),
  }
  if (!request.segments) return [{ type: "text", text }, finish]
  // where nothing is said, some servers send none
  if (!Array.isArray(segments) && text.trim() !== "") throw garbled("it sent no segments")
  const pieces = (Array.isArray(segments) ? segments : []).map((one): TranscribeEvent => {
    const segment = fieldsOf(one)
    if (typeof segment.text !== "string") throw garbled("a segment has no text")
    return { type: "text", text: segment.text, span: spanOf(segment) }
  })
  return [...pieces, finish]
}

/** The upstreams that say when something is said, where the request wants that. */
const ableToHear = (
  { segments }: TranscribeRequest,
  upstreams: readonly Upstream[],
): readonly Upstream[] | ApiError => {
  const able = upstreams.filter(({ features }) => !segments || features.has("verbose_json"))
  if (able.length > 0 || upstreams.length === 0) return able
  return apiError(
    "unsupported_parameter",
    "response_format: the server behind this model gives no times; use json or text.",
    { param: "response_format" },
  )
}

/** The transcription task of a remote model. It costs the seconds of the file, once it is there. */
export const makeTranscribeTask = (
  model: RemoteModel,
  fallback: FallbackOf<TranscribeRequest, TranscribeEvent>,
): Task<TranscribeRequest, TranscribeEvent> => ({
  plan: (request, context) => {
    const usage = usageOf({ audioSeconds: request.seconds })
    return planJson<TranscribeRequest, TranscribeEvent>(model, fallback, {
      request,
      context,
      bound: usage,
      able: ableToHear(request, model.upstreams),
      callOf: (upstream) => ({
        path: "v1/audio/transcriptions",
        body: formFor(request, upstream),
        read: reading((answer) => ({
          events: readTranscript(answer, request),
          usage,
          reported: 0,
        })),
      }),
    })
  },
})
