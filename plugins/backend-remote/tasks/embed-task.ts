import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { EmbedEvent, EmbedItem, EmbedRequest, Task } from "../../../core/ports/model.ts"
import { usageOf } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import type { RemoteModel } from "../remote-model.ts"
import { failure } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import {
  bytesOfToken,
  countOf,
  fieldsOf,
  type JsonAnswer,
  mostBytesOfToken,
  planJson,
  reading,
} from "./json-task.ts"

export interface EmbedShape {
  /** Length of the vectors, once it is known; an answer of another length is garbled. */
  dimensions: number | undefined
  readonly takesImages: boolean
  /** How an instruction stands before a text, with `{instruction}` where it is. */
  readonly instructionTemplate: string
}

const specialTokens = 8
const garbled = (message: string) => failure("garbled", message)

const bytesOf = (item: EmbedItem, instruction = ""): number =>
  item.type === "text" ? Buffer.byteLength(item.text) + Buffer.byteLength(instruction) : 0

/** Returns the refusal of the first item that the model can't take. */
const wrongItem = (
  { items, truncate, instruction }: EmbedRequest,
  contextTokens: number,
  { takesImages }: EmbedShape,
): ApiError | undefined => {
  for (const [index, item] of items.entries()) {
    const param = `input[${index}]`
    const isImage = item.type === "media" && item.mediaType.startsWith("image/")
    if (item.type === "tokens" || (item.type === "media" && !(takesImages && isImage)))
      return apiError(
        "unsupported_parameter",
        `This model embeds texts${takesImages ? " and images" : ""} only, not ${item.type === "media" ? "images or other media" : "arrays of tokens"}.`,
        { param },
      )
    const least = Math.floor(bytesOf(item, instruction) / mostBytesOfToken)
    if (truncate === "NONE" && least > contextTokens)
      return apiError(
        "text_too_long",
        `The text has at least ${least} tokens, the model takes ${contextTokens}, and truncate is NONE.`,
        { param },
      )
  }
  return undefined
}

const decodeVector = (value: unknown): Float32Array => {
  if (typeof value === "string") {
    const bytes = Buffer.from(value, "base64")
    if (bytes.length === 0 || bytes.length % 4 > 0) throw garbled("a vector is not in its form")
    return Float32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(4 * at))
  }
  if (!Array.isArray(value) || value.some((one) => typeof one !== "number"))
    throw garbled("a vector is not a list of numbers")
  return Float32Array.from(value)
}

/** The vector with Euclidean norm 1. */
const normalized = (value: unknown): Float32Array => {
  const vector = decodeVector(value)
  let square = 0
  for (const x of vector) square += x * x
  if (!Number.isFinite(square) || square === 0)
    throw garbled("a vector has no direction, or numbers that are none")
  const norm = Math.sqrt(square)
  return vector.map((x) => x / norm)
}

/** One vector for each item, whatever their order; all of one length. */
const readVectors = (data: unknown, items: number, shape: EmbedShape): readonly Float32Array[] => {
  if (!Array.isArray(data) || data.length !== items)
    throw garbled(`it sent ${Array.isArray(data) ? data.length : "no"} vectors for ${items} items`)
  const vectors: Float32Array[] = []
  for (const [at, one] of data.entries()) {
    const { index = at, embedding } = fieldsOf(one)
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= items)
      throw garbled("a vector has no place")
    if (vectors[index as number]) throw garbled("two vectors have the same place")
    vectors[index as number] = normalized(embedding)
  }
  const dimensions = shape.dimensions ?? vectors[0]!.length
  if (vectors.some(({ length }) => length !== dimensions))
    throw garbled(`a vector has not ${dimensions} numbers`)
  shape.dimensions = dimensions
  return vectors
}

/** A server that cuts texts itself says how many, not which: those that are longest. */
const cutItems = (items: readonly EmbedItem[], count: number): ReadonlySet<number> =>
  new Set([...items.keys()].sort((a, b) => bytesOf(items[b]!) - bytesOf(items[a]!)).slice(0, count))

const dataUri = ({ mediaType, bytes }: Extract<EmbedItem, { readonly type: "media" }>) =>
  `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}`

const embedBody = (
  { items, instruction, truncate }: EmbedRequest,
  { options }: Upstream,
  { instructionTemplate }: EmbedShape,
): Json => {
  const isRakit = options.kind === "rakit"
  const before =
    instruction === undefined || isRakit
      ? ""
      : instructionTemplate.replace("{instruction}", () => instruction)
  return {
    model: options.model,
    input: items.map((item) => {
      if (item.type === "media") return { type: "image", image_url: dataUri(item) }
      return item.type === "text" ? before + item.text : []
    }),
    encoding_format: isRakit ? "base64" : "float",
    ...(isRakit && { truncate, ...(instruction !== undefined && { instruction }) }),
  }
}

const readAnswer = (
  answer: Json,
  { items, instruction }: EmbedRequest,
  shape: EmbedShape,
): JsonAnswer<EmbedEvent> => {
  const { data, usage } = fieldsOf(answer)
  const { prompt_tokens, truncated_count } = fieldsOf(usage)
  const vectors = readVectors(data, items.length, shape)
  const cut = cutItems(items, countOf(truncated_count) ?? 0)
  const images = items.filter(({ type }) => type === "media").length
  const counted = countOf(prompt_tokens)
  // a text is a token at least
  const reported = counted === 0 && images < items.length ? undefined : counted
  const estimate = items.reduce((sum, item) => sum + bytesOf(item, instruction), 0) / bytesOfToken
  return {
    events: vectors.map((vector, index) => ({ index, vector, truncated: cut.has(index) })),
    usage: usageOf({ inputTokens: reported ?? Math.ceil(estimate), images }),
    reported,
  }
}

/** An own count of what the model reads: each text by itself, cut to the window. */
const ownTexts = (
  { items, instruction }: EmbedRequest,
  contextTokens: number,
  { instructionTemplate }: EmbedShape,
) => ({
  texts: items
    .flatMap((item) => (item.type === "text" ? [item.text] : []))
    .concat(
      instruction === undefined
        ? []
        : instructionTemplate.replace("{instruction}", () => instruction),
    ),
  range: (counts: readonly number[]) => {
    const beside = instruction === undefined ? 0 : counts.at(-1)!
    const texts = instruction === undefined ? counts : counts.slice(0, -1)
    const within = (more: number) =>
      texts.reduce((sum, count) => sum + Math.min(contextTokens, count + beside + more), 0)
    const likely = within(2)
    // an image may be tokens, too
    const images = (items.length - texts.length) * contextTokens
    return {
      least: Math.floor(within(0) * 0.9),
      likely,
      most: Math.ceil(within(specialTokens) * 1.1) + images,
    }
  },
})

/** The embed task of a remote model. */
export const makeEmbedTask = (
  model: RemoteModel,
  shape: EmbedShape,
  fallback: FallbackOf<EmbedRequest, EmbedEvent>,
): Task<EmbedRequest, EmbedEvent> => ({
  plan: (request, context) =>
    Effect.suspend(() => {
      const { contextTokens, upstreams } = model
      const wrong = wrongItem(request, contextTokens, shape)
      if (wrong) return Effect.fail(wrong)
      const texts = request.items.filter(({ type }) => type === "text")
      const bound = usageOf({
        inputTokens: texts.reduce(
          (sum, item) =>
            sum + Math.min(contextTokens, bytesOf(item, request.instruction) + specialTokens),
          0,
        ),
        images: request.items.length - texts.length,
      })
      return planJson(model, fallback, {
        request,
        context,
        bound,
        able: upstreams,
        own: ownTexts(request, contextTokens, shape),
        callOf: (upstream) => ({
          path: "v1/embeddings",
          body: embedBody(request, upstream, shape),
          read: reading((answer) => readAnswer(answer, request, shape)),
        }),
      })
    }),
})
