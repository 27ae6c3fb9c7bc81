import { hash } from "node:crypto"
import { rupiahNumber } from "../../core/money.ts"
import type { Call } from "../../core/ports/endpoint.ts"
import type { ImageSetting } from "../../core/ports/image.ts"
import type { ImageRequest } from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { noUsage } from "../../core/usage.ts"
import { withParameters } from "./png-text.ts"
import type { EventFamily, ImagesReply, ImageUsage } from "./schema.ts"
import { sizeText } from "./size.ts"

/** What an answer says of its request. */
export interface Heading {
  readonly family: EventFamily
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  readonly request: ImageRequest
  /** Digests of the source images. */
  readonly sources: readonly string[]
  /** Settings that did not make the picture; known when it is there. */
  readonly ignored?: readonly ImageSetting[]
}

const usageNow = (call: Pick<Call<unknown>, "used" | "cost">, model: string): ImageUsage => {
  const { inputTokens, images } = call.used()[model] ?? noUsage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { text_tokens: inputTokens, image_tokens: 0 },
    output_tokens: 0,
    total_tokens: inputTokens,
    images,
    cost_idr: rupiahNumber(call.cost()),
  }
}

/** All that the picture can be made again from, but for the sources of an edit; no time. */
export const parametersOf = ({ model, request, ignored = [] }: Heading) => {
  const { prompt, seed, steps, guidanceScale, strength, adapter } = request
  const isTrue = (setting: ImageSetting) => !ignored.includes(setting)
  return {
    prompt,
    model,
    size: sizeText(request),
    ...(isTrue("steps") && { num_steps: steps }),
    ...(isTrue("seed") && { seed }),
    ...(isTrue("guidanceScale") && { guidance_scale: guidanceScale }),
    lora: adapter?.id ?? "none",
    ...(adapter && { lora_strength: adapter.strength }),
    ...(strength !== undefined && isTrue("strength") && { strength }),
  }
}

/** Returns the PNG file that clients get: with its parameters. */
export const toFile = (heading: Heading, png: Uint8Array): Buffer =>
  withParameters(png, parametersOf(heading))

export const toReply = (
  heading: Heading,
  file: Buffer,
  call: Pick<Call<unknown>, "used" | "cost">,
): ImagesReply => ({
  created: heading.created,
  data: [{ b64_json: file.toString("base64") }],
  size: sizeText(heading.request),
  usage: usageNow(call, heading.model),
})

const eventFields = ({ created, request }: Heading, bytes: Uint8Array) => ({
  b64_json: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
  created_at: created,
  size: sizeText(request),
  quality: "auto",
  background: "opaque",
  output_format: "png",
})

export const toPartialEvent = (heading: Heading, index: number, preview: Uint8Array) => ({
  type: `${heading.family}.partial_image`,
  partial_image_index: index,
  ...eventFields(heading, preview),
})

export const toCompletedEvent = (
  heading: Heading,
  file: Buffer,
  call: Pick<Call<unknown>, "used" | "cost">,
) => ({
  type: `${heading.family}.completed`,
  ...eventFields(heading, file),
  usage: usageNow(call, heading.model),
})

const digestOf = (bytes: string | Uint8Array): string => `sha256:${hash("sha256", bytes)}`

/**
 * What a receipt says of a picture: digests of the request with its sources, of the deployment's
 * entry and of the file; and the seed that was used, which the client may not have chosen.
 */
export const evidenceOf = (
  heading: Heading,
  { id, backend, options }: ModelEntry,
  file: Buffer,
) => {
  const { seed, ...parameters } = parametersOf(heading)
  return {
    request: digestOf(JSON.stringify([parameters, heading.sources])),
    config: digestOf(JSON.stringify([id, backend, options])),
    ...(seed !== undefined && { seed }),
    answer: digestOf(file),
  }
}
