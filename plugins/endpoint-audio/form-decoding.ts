import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { BodyPart, MultipartBody } from "../../core/ports/endpoint.ts"
import { isRefused } from "./refused-fields.ts"
import { TranscriptionBody } from "./schema.ts"

const known = new Set(Object.keys(TranscriptionBody.fields))
const jsonNumber = /^-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/
const mostItems = 16

/** What is no number or boolean stays text: the schema says what is expected. */
const fieldValue = (name: string, text: string): Json => {
  if (name === "temperature" && jsonNumber.test(text)) return Number(text)
  if (name === "stream" && (text === "true" || text === "false")) return text === "true"
  return text
}

const wrong = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${why}`, { param })

const takeField = (
  fields: Map<string, Json>,
  { name: sent, value }: Extract<BodyPart, { readonly kind: "field" }>,
): ApiError | undefined => {
  // lists come as `include[]`, objects as `chunking_strategy[type]`
  const name = sent.replace(/\[.*$/s, "")
  if (!known.has(name) && !isRefused(name)) return undefined
  if (name === "file") return wrong(name, "must be a file, not a field")
  if (name === "timestamp_granularities" || sent !== name) {
    const before = fields.get(name) ?? []
    if (!Array.isArray(before)) return wrong(name, "came twice")
    if (before.length >= mostItems) return wrong(name, `must have at most ${mostItems} items`)
    fields.set(name, [...before, value])
    return undefined
  }
  if (fields.has(name)) return wrong(name, "came twice")
  fields.set(name, fieldValue(name, value))
  return undefined
}

const take = (
  fields: Map<string, Json>,
  file: Uint8Array[],
  part: BodyPart,
): Effect.Effect<void, ApiError> =>
  Effect.suspend((): Effect.Effect<void, ApiError> => {
    if (part.kind === "field") {
      const refusal = takeField(fields, part)
      return refusal ? Effect.fail(refusal) : Effect.void
    }
    const { name } = part
    if (name !== "file")
      return known.has(name)
        ? Effect.fail(wrong(name, "must be a field, not a file"))
        : Stream.runDrain(part.bytes)
    if (file.length > 0) return Effect.fail(wrong(name, "came twice"))
    return Effect.map(
      Stream.runCollect(part.bytes),
      (chunks) => void file.push(Buffer.concat(chunks)),
    )
  })

/** Reads a form into the JSON body that says the same; lists come as `name[]`. */
export const readTranscriptionForm = ({ parts }: MultipartBody): Effect.Effect<Json, ApiError> =>
  Effect.suspend(() => {
    const fields = new Map<string, Json>()
    const file: Uint8Array[] = []
    return Effect.map(
      Stream.runForEach(parts, (part) => take(fields, file, part)),
      () => ({ ...Object.fromEntries(fields), ...(file[0] && { file: file[0] }) }) as Json,
    )
  })
