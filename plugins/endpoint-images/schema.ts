import { Schema, SchemaTransformation } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import { fileField } from "../../core/ports/endpoint.ts"

export const maxPromptCharacters = 2_000
export const maxSources = 5
/** The largest side of a generated picture and of an edited one, in pixels. */
export const maxSide = { generation: 960, edit: 704 } as const

const between = (minimum: number, maximum: number) => Schema.isBetween({ minimum, maximum })
const said = Schema.String.check(
  Schema.makeFilter((text: string) => text.trim() !== "", { message: "must not be blank" }),
).annotate({ description: `What to show: at most ${maxPromptCharacters} characters.` })
const steps = optional(Schema.Int.check(between(1, 50)))
const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** An image file: as base64 or a data URI in JSON, as it is in a form. */
export type Source = string | Uint8Array

const isSource = (value: unknown): value is Source =>
  (typeof value === "string" && value !== "") || value instanceof Uint8Array

const Source = Schema.declare(isSource, {
  message: "must be an image in base64, or a data URI of one",
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

const common = {
  model: Schema.NonEmptyString,
  prompt: said,
  n: optional(Schema.Literal(1)).annotate({ default: 1, message: "must be 1" }),
  response_format: optional(Schema.Literal("b64_json")).annotate({
    default: "b64_json",
    message: "must be b64_json: there are no URLs",
  }),
  num_steps: steps.annotate({ default: 4, description: "Denoising steps." }),
  num_inference_steps: steps.annotate({ description: "Another name of `num_steps`." }),
  seed: optional(Schema.Int.check(between(-1, 2 ** 31 - 1))).annotate({
    default: -1,
    description: "The same seed gives the same picture; -1: a random one.",
  }),
  guidance_scale: optional(Schema.Finite.check(between(0, 20))).annotate({ default: 1 }),
  lora: optional(Schema.String.check(atMostCharacters(64))).annotate({
    default: "none",
    description: "A LoRA of the model, such as `dark` or `anime`; none: the model alone.",
  }),
  lora_strength: optional(Schema.Finite.check(between(0, 1.5))).annotate({ default: 0.6 }),
  stream: optional(Schema.Boolean).annotate({ default: false }),
  partial_images: optional(Schema.Int.check(between(0, 3))).annotate({
    default: 0,
    description: "How many previews come before the picture; with `stream` only.",
  }),
  user: optional(Schema.String.check(atMostCharacters(512))),
}

const consistent = Schema.makeFilter(
  ({ num_steps, num_inference_steps }: Schema.Struct<typeof common>["Type"]) =>
    num_steps != null && num_inference_steps != null && num_steps !== num_inference_steps
      ? { path: ["num_inference_steps"], issue: "must equal num_steps where both are given" }
      : undefined,
)

const size = (side: number, otherwise: string) =>
  optional(Schema.String).annotate({
    description: `\`WxH\`, 64 to ${side} a side, each rounded down to a multiple of 16; auto: ${otherwise}.`,
  })

/**
 * The body of `POST /v1/images/generations`. An explicit null counts as absent; unknown fields are
 * ignored, but for those of refused-fields.ts.
 */
export const GenerationBody = Schema.Struct({
  ...common,
  size: size(maxSide.generation, "768x768").annotate({ default: "768x768" }),
})
  .annotate({
    examples: [{ model: "svc-iris", prompt: "A red apple on a table", size: "512x512", seed: 7 }],
  })
  .check(consistent)
  .annotate({ identifier: "ImageGenerationRequest" })
export type GenerationBody = typeof GenerationBody.Type

const Edit = Schema.Struct({
  ...common,
  size: size(maxSide.edit, "that of the first image, at most 704 a side"),
  image: optional(Source).annotate({
    description: "PNG, JPEG, WebP or GIF in base64, or a data URI; either this or `images`.",
  }),
  images: optional(
    Schema.Array(Source)
      .check(Schema.isMinLength(1, { message: "must hold at least one image" }))
      .check(Schema.isMaxLength(maxSources, { message: `must hold at most ${maxSources} images` })),
  ).annotate({ description: "The image to change, then others to take things from." }),
  strength: optional(Schema.Finite.check(between(0, 1))).annotate({
    default: 0.75,
    description: "How far the picture may leave the first image: 0 not at all.",
  }),
})

const oneSource = Schema.makeFilter(({ image, images }: typeof Edit.Type) => {
  if (image == null && images == null)
    return { path: ["image"], issue: "is missing; give image, or images" }
  return image != null && images != null
    ? { path: ["images"], issue: "can't be combined with image" }
    : undefined
})

/** The body of `POST /v1/images/edits`, as JSON; form-decoding.ts reads forms into it. */
export const EditBody = Edit.annotate({
  examples: [
    {
      model: "svc-iris",
      prompt: "Make it red",
      image:
        "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR4nGNgYPiPFWEVpK0E6UYBAHBPP8Hs1nnTAAAAAElFTkSuQmCC",
      strength: 0.5,
    },
  ],
})
  .check(consistent)
  .check(oneSource)
  .annotate({ identifier: "ImageEditRequest" })
export type EditBody = typeof EditBody.Type

export type ImageBody = GenerationBody | EditBody

const { image: _, images: __, n: ___, response_format: ____, ...fields } = Edit.fields

/**
 * The fields of a form, as the official client sends them: numbers and booleans as text. Those of
 * one value are left out: generated clients can't write them into forms.
 */
export const EditForm = Schema.Struct({
  ...fields,
  image: Schema.Array(fileField).annotate({
    description: `1 to ${maxSources} files: the one to change, then others to take things from. Also as \`image[]\`.`,
  }),
}).annotate({ identifier: "ImageEditForm" })

const Usage = Schema.Struct({
  input_tokens: count,
  input_tokens_details: Schema.Struct({ text_tokens: count, image_tokens: count }),
  output_tokens: count,
  total_tokens: count,
  images: count,
  cost_idr: Schema.Finite,
}).annotate({ identifier: "ImageUsage" })
export type ImageUsage = typeof Usage.Type

const base64 = Schema.String.annotate({ description: "A PNG file in base64." })

export const ImagesReply = Schema.Struct({
  created: count,
  data: Schema.Array(Schema.Struct({ b64_json: base64 })),
  size: Schema.String,
  usage: Usage,
}).annotate({ identifier: "ImagesResponse" })
export type ImagesReply = typeof ImagesReply.Type

const eventFields = {
  b64_json: base64,
  created_at: count,
  size: Schema.String,
  quality: Schema.Literal("auto"),
  background: Schema.Literal("opaque"),
  output_format: Schema.Literal("png"),
}

/** What a stream of the endpoint is called by: `image_generation.completed`. */
export type EventFamily = "image_generation" | "image_edit"

const eventOf = <F extends EventFamily>(family: F, identifier: string) =>
  Schema.Union([
    Schema.Struct({
      type: Schema.Literal(`${family}.partial_image`),
      partial_image_index: count,
      ...eventFields,
    }).annotate({ identifier: `${identifier}PartialEvent` }),
    Schema.Struct({
      type: Schema.Literal(`${family}.completed`),
      ...eventFields,
      usage: Usage,
    }).annotate({ identifier: `${identifier}CompletedEvent` }),
  ])

export const GenerationEvent = eventOf("image_generation", "ImageGeneration")
export const EditEvent = eventOf("image_edit", "ImageEdit")
