import { Schema, SchemaTransformation } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"

const maxImages = 8

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const filled = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))

const said = filled.check(
  Schema.makeFilter((text: string) => text.trim() !== "", { message: "must not be blank" }),
)

/** Also where `image_url` is there, but is no text. */
const noSource = "must be base64; or `image_url` a data URI, as a string"

const RawImage = Schema.Struct({
  type: Schema.Literal("image"),
  image: filled
    .annotate({ description: "base64" })
    .pipe(Schema.annotateKey({ messageMissingKey: noSource })),
}).annotate({ identifier: "EmbeddingRawImage" })
const UriImage = Schema.Struct({
  type: Schema.Literal("image"),
  image_url: filled.annotate({ description: "data URI" }),
}).annotate({ identifier: "EmbeddingUriImage" })
const ChatImage = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({ url: filled.annotate({ description: "data URI" }) }).annotate({
    message: "must be an object with a `url`",
  }),
}).annotate({ identifier: "EmbeddingChatImage" })
export const ImageItem = Schema.Union([RawImage, UriImage, ChatImage]).annotate({
  identifier: "EmbeddingImage",
})
export type ImageItem = typeof ImageItem.Type

/** Integers from 0 to 2^31-1: those that equal their 32 bits. */
const wrongId = (ids: readonly unknown[]): number => {
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i] as number
    if ((id | 0) !== id || id < 0) return i
  }
  return -1
}

const itemKinds = "must be a string, an array of token ids or an image object"

const isArray = (value: unknown): value is readonly number[] => Array.isArray(value)

/**
 * An array of any length as one value, as there may be hundreds of thousands of ids: a Schema for
 * each would block the server for 100 ms, a loop takes 1. The codec is for `/openapi.json`.
 */
const AnyArray = Schema.declare(isArray, {
  message: itemKinds,
  toCodecJson: () =>
    Schema.link<readonly number[]>()(
      Schema.Array(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
      SchemaTransformation.passthrough(),
    ),
})

/** `otherwise`: what is wrong with an array that begins with something else. */
const tokenIds = (otherwise: (items: readonly unknown[]) => string | undefined) =>
  AnyArray.check(
    Schema.makeFilter((ids: readonly unknown[]) => {
      if (typeof ids[0] !== "number") return otherwise(ids) ?? "must be token ids"
      const at = wrongId(ids)
      return at < 0 ? undefined : { path: [at], issue: "must be a token id: a whole number" }
    }),
  ).annotate({ description: "A text as tokens of the model's own vocabulary." })

const TokenIds = tokenIds((items) => (items.length === 0 ? "must not be empty" : undefined))
type TokenIds = typeof TokenIds.Type

const Item = Schema.Union([said, TokenIds, ImageItem]).annotate({ message: itemKinds })
export type Item = typeof Item.Type
type Input = string | TokenIds | readonly Item[]

export const isTokenIds = (item: Input | Item): item is TokenIds =>
  Array.isArray(item) && typeof item[0] === "number"

export const isImage = (item: Item): item is ImageItem =>
  typeof item === "object" && !Array.isArray(item)

/** Returns the index of the first image, -1 where there is none. */
export const firstImage = (input: Input): number =>
  typeof input === "string" || isTokenIds(input)
    ? -1
    : (input as readonly Item[]).findIndex(isImage)

const wrongCount = (maxInputs: number) => (items: readonly unknown[]) => {
  if (items.length === 0) return "must hold at least one text or image"
  const images = (items as readonly Item[]).filter(isImage).length
  if (items.length - images > maxInputs)
    return `must hold at most ${maxInputs} texts; the operator may raise it (maxInputs of endpoint-embeddings)`
  return images <= maxImages ? undefined : `must hold at most ${maxImages} images`
}

const embeddingsInput = (maxInputs: number) => {
  const counted = Schema.makeFilter(wrongCount(maxInputs))
  return Schema.Union([said, tokenIds(wrongCount(maxInputs)), Schema.Array(Item).check(counted)])
}

/**
 * The body of `POST /v1/embeddings`. An explicit null counts as absent; unknown fields are ignored.
 */
export const embeddingsBody = (maxInputs: number) =>
  Schema.Struct({
    model: Schema.NonEmptyString,
    input: embeddingsInput(maxInputs),
    dimensions: optional(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2048 })),
    ).annotate({
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
      description:
        "What to do with a text over 10,000 characters or tokens, or over the model's context_window.",
    }),
    user: optional(Schema.String.check(atMostCharacters(512))),
  }).annotate({
    identifier: "EmbeddingsRequest",
    examples: [{ model: "svc-embed", input: "Selamat pagi" }],
  })
export type EmbeddingsBody = ReturnType<typeof embeddingsBody>["Type"]

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
