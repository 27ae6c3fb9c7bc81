import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { BodyPart, MultipartBody } from "../../core/ports/endpoint.ts"
import { isRefused } from "./refused-fields.ts"
import { EditBody, maxSources, type Source } from "./schema.ts"

/** How a field's text is read; others are text. */
const numbers = new Set([
  "n",
  "num_steps",
  "num_inference_steps",
  "seed",
  "guidance_scale",
  "lora_strength",
  "partial_images",
  "strength",
  "output_compression",
])
const booleans = new Set(["stream"])
const required = new Set(["model", "prompt"])
/** The fields that an edit has; a file under such a name must not become its text. */
const texts = new Set(Object.keys(EditBody.fields))
/** Fields that nobody knows are ignored, however often they come, as in JSON. */
const isKnown = (name: string): boolean => texts.has(name) || isRefused(name)

/** A number as JSON has it; `0x10`, ` 5` and `1_000` are none. */
const jsonNumber = /^-?(0|[1-9]\d{0,14})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/

/** What is no number or boolean stays text: the schema says what is expected. */
const fieldValue = (name: string, text: string): Json => {
  // the official client has no other way to send a null
  if (text === "null" && !required.has(name)) return null
  if (numbers.has(name) && jsonNumber.test(text)) return Number(text)
  if (booleans.has(name) && (text === "true" || text === "false")) return text === "true"
  return text
}

/** The names under which clients send files: `image[]` is the official client's for several. */
const listNames = new Set(["image[]", "images", "images[]"])

const wrong = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${why}`, { param })

/** States: reading -> done. */
interface Reading {
  readonly fields: Map<string, Json>
  /** Under `image`. */
  readonly single: Source[]
  /** Under a name of lists. */
  readonly listed: Source[]
}

const bytesOf = (part: Extract<BodyPart, { readonly kind: "file" }>) =>
  Effect.map(Stream.runCollect(part.bytes), (chunks): Source => Buffer.concat(chunks))

const take = ({ fields, single, listed }: Reading, part: BodyPart): Effect.Effect<void, ApiError> =>
  Effect.suspend((): Effect.Effect<void, ApiError> => {
    const { name } = part
    const sources = name === "image" ? single : listNames.has(name) ? listed : undefined
    if (sources) {
      if (single.length + listed.length >= maxSources)
        return Effect.fail(wrong("images", `must hold at most ${maxSources} images`))
      const source = part.kind === "file" ? bytesOf(part) : Effect.succeed<Source>(part.value)
      return Effect.map(source, (one) => void sources.push(one))
    }
    if (!isKnown(name)) return part.kind === "file" ? Stream.runDrain(part.bytes) : Effect.void
    if (fields.has(name)) return Effect.fail(wrong(name, "came twice"))
    if (part.kind === "field")
      return Effect.sync(() => void fields.set(name, fieldValue(name, part.value)))
    if (texts.has(name)) return Effect.fail(wrong(name, "must be a field, not a file"))
    // a mask is refused by its name, as in JSON
    fields.set(name, "(a file)")
    return Stream.runDrain(part.bytes)
  })

/**
 * Reads a form into the JSON body that says the same. One file, under whatever name, is `image`;
 * several are `images`.
 */
export const readEditForm = ({ parts }: MultipartBody): Effect.Effect<Json, ApiError> =>
  Effect.suspend(() => {
    const reading: Reading = { fields: new Map(), single: [], listed: [] }
    return Effect.map(
      Stream.runForEach(parts, (part) => take(reading, part)),
      () => {
        const { fields, single, listed } = reading
        const body = Object.fromEntries(fields)
        if (single.length > 0 && listed.length > 0)
          return { ...body, image: single[0], images: listed }
        const sources = [...single, ...listed]
        if (sources.length === 0) return body
        return sources.length === 1 ? { ...body, image: sources[0] } : { ...body, images: sources }
      },
    )
  })
