import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"

/**
 * Fields of OpenAI's transcriptions that would change the answer and are not served, with the value
 * that asks for what happens anyway.
 */
const refused: Readonly<Record<string, Json>> = {
  include: [],
  chunking_strategy: "auto",
  known_speaker_names: [],
  known_speaker_references: [],
}

export const isRefused = (name: string): boolean => Object.hasOwn(refused, name)

const isIdle = (value: Json, idle: Json | undefined): boolean =>
  value === idle || (Array.isArray(value) && value.length === 0)

const unsupported = (param: string, why: string): ApiError =>
  apiError("unsupported_parameter", `${param}: ${why}`, { param })

/** Returns 400 `unsupported_parameter` for the first thing that is not served. */
export const refusalOf = (body: Json): ApiError | undefined => {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined
  const fields = body as Readonly<Record<string, Json>>
  for (const [name, value] of Object.entries(fields))
    if (isRefused(name) && value != null && !isIdle(value, refused[name]))
      return unsupported(name, "is not supported.")
  const { response_format: format, timestamp_granularities: times, stream } = fields
  if (Array.isArray(times) && times.includes("word"))
    return unsupported("timestamp_granularities", "only segments have times here, not words.")
  if (Array.isArray(times) && times.length > 0 && format !== "verbose_json")
    return unsupported("timestamp_granularities", "needs response_format verbose_json.")
  if (stream === true && format != null && format !== "json")
    return unsupported("response_format", "a stream is json only.")
  return undefined
}
