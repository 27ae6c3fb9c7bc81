import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"

const maxTexts = 64
const maxImages = 8

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const filled = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))

const RawImage = Schema.Struct({
  type: Schema.Literal("image"),
  image: filled.annotate({ description: "base64" }),
})
const UriImage = Schema.Struct({
  type: Schema.Literal("image"),
  image_url: filled.annotate({ description: "data URI" }),
})
const ChatImage = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({ url: filled.annotate({ description: "data URI" }) }),
})
export const ImageItem = Schema.Union([RawImage, UriImage, ChatImage]).annotate({
  identifier: "EmbeddingImage",
})
export type ImageItem = typeof ImageItem.Type

const Item = Schema.Union([filled, ImageItem]).annotate({
  message: "must be a string or an image object; token arrays are not taken, send the text",
})
export type Item = typeof Item.Type

const fewEnough = Schema.makeFilter((items: readonly Item[]) => {
  const texts = items.filter((item) => typeof item === "string").length
  if (texts > maxTexts) return `must hold at most ${maxTexts} texts`
  return items.length - texts <= maxImages || `must hold at most ${maxImages} images`
})

/**
 * The body of `POST /v1/embeddings`. An explicit null counts as absent; unknown fields are ignored.
 */
export const EmbeddingsBody = Schema.Struct({
  model: Schema.NonEmptyString,
  input: Schema.Union([
    filled,
    Schema.Array(Item)
      .check(Schema.isMinLength(1, { message: "must hold at least one text or image" }))
      .check(fewEnough),
  ]),
  dimensions: optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2048 }))).annotate({
    description: "The first so many numbers, normalized again; all by default.",
  }),
  encoding_format: optional(Schema.Literals(["float", "base64"])).annotate({
    default: "float",
    description: "base64: little-endian float32.",
  }),
  instruction: optional(Schema.String.check(atMostCharacters(10_000))).annotate({
    description: "What the vectors are for; texts only.",
  }),
  truncate: optional(Schema.Literals(["END", "START", "NONE"])).annotate({
    default: "END",
    description: "What to do with a text over 10,000 characters.",
  }),
  user: optional(Schema.String.check(atMostCharacters(512))),
}).annotate({
  identifier: "EmbeddingsRequest",
  examples: [{ model: "svc-embed", input: "Selamat pagi" }],
})
export type EmbeddingsBody = typeof EmbeddingsBody.Type

export const EmbeddingsReply = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      object: Schema.Literal("embedding"),
      index: count,
      embedding: Schema.Union([Schema.Array(Schema.Finite), Schema.String]),
      type: Schema.Literals(["text", "image"]),
    }),
  ),
  model: Schema.String,
  usage: Schema.Struct({
    prompt_tokens: count,
    total_tokens: count,
    image_count: count,
    truncated_count: count,
    cost_idr: Schema.Finite,
  }),
}).annotate({ identifier: "EmbeddingsResponse" })
export type EmbeddingsReply = typeof EmbeddingsReply.Type
