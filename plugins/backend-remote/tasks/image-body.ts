import { FormData } from "undici"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { ImageSetting } from "../../../core/ports/image.ts"
import type { ImageRequest } from "../../../core/ports/model.ts"
import type { Feature } from "../kinds.ts"
import type { Upstream } from "../upstream/upstream.ts"

/** What of a request is a setting, by its name in the API and among the features of kinds. */
const settings: readonly {
  readonly setting: ImageSetting
  readonly feature: Feature
  readonly param: string
}[] = [
  { setting: "seed", feature: "image_seed", param: "seed" },
  { setting: "steps", feature: "num_steps", param: "num_steps" },
  { setting: "guidanceScale", feature: "guidance_scale", param: "guidance_scale" },
  { setting: "strength", feature: "strength", param: "strength" },
]

interface Wish {
  readonly feature: Feature
  readonly param: string
}

/** What the client itself asks for; what was left to us an upstream may do in its own way. */
const wishesOf = (request: ImageRequest): readonly Wish[] => {
  const { images, previews = 0, unsaid = [] } = request
  const asked = settings.filter(
    ({ setting }) => request[setting] !== undefined && !unsaid.includes(setting),
  )
  return [
    ...(images.length > 0 ? [{ feature: "image_edits" as const, param: "image" }] : []),
    ...(previews > 0 ? [{ feature: "partial_images" as const, param: "partial_images" }] : []),
    ...asked,
  ]
}

/** The upstreams that keep all that the client asks for, or the refusal of what none keeps. */
export const ableToDraw = (
  request: ImageRequest,
  upstreams: readonly Upstream[],
): readonly Upstream[] | ApiError => {
  if (request.adapter)
    return apiError("unsupported_parameter", "lora: the server behind this model has none.", {
      param: "lora",
    })
  const wishes = wishesOf(request)
  const keeps = ({ features }: Upstream, { feature }: Wish) => features.has(feature)
  const able = upstreams.filter((upstream) => wishes.every((wish) => keeps(upstream, wish)))
  if (able.length > 0 || upstreams.length === 0) return able
  const missing =
    wishes.find((wish) => !upstreams.some((upstream) => keeps(upstream, wish))) ?? wishes[0]!
  return apiError(
    "unsupported_parameter",
    `${missing.param}: the server behind this model does not keep it.`,
    { param: missing.param },
  )
}

/** Settings of the request that this upstream does not know. */
export const ignoredBy = ({ features }: Upstream, request: ImageRequest): readonly ImageSetting[] =>
  settings.flatMap(({ setting, feature }) =>
    request[setting] !== undefined && !features.has(feature) ? [setting] : [],
  )

const fieldsFor = (request: ImageRequest, { features, options, kind }: Upstream) => {
  const { prompt, width, height, seed, steps, guidanceScale, strength, previews = 0 } = request
  return {
    model: options.model,
    prompt,
    n: 1,
    size: `${width}x${height}`,
    ...kind.picture,
    ...(features.has("image_seed") && { seed }),
    ...(features.has("num_steps") && { num_inference_steps: steps }),
    ...(features.has("guidance_scale") && { guidance_scale: guidanceScale }),
    ...(features.has("strength") && strength !== undefined && { strength }),
    ...(previews > 0 && { stream: true, partial_images: previews }),
  }
}

const mediaTypeOf = (bytes: Uint8Array): string => {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(12, bytes.length))
  if (head.toString("latin1", 0, 4) === "\x89PNG") return "image/png"
  if (head.toString("latin1", 0, 3) === "GIF") return "image/gif"
  return head.toString("latin1", 0, 4) === "RIFF" ? "image/webp" : "image/jpeg"
}

const formOf = (fields: Readonly<Record<string, unknown>>, images: readonly Uint8Array[]) => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value))
  // one file is `image` for every server; OpenAI's client calls several `image[]`
  const name = images.length > 1 ? "image[]" : "image"
  for (const [index, bytes] of images.entries()) {
    const type = mediaTypeOf(bytes)
    const file = new Blob([new Uint8Array(bytes)], { type })
    form.append(name, file, `${index + 1}.${type.slice("image/".length)}`)
  }
  return form
}

/** The request as the upstream's kind takes it. */
export const imageCall = (
  request: ImageRequest,
  upstream: Upstream,
): { readonly path: string; readonly body: Json | FormData } => {
  const { images } = request
  const fields = fieldsFor(request, upstream)
  if (images.length === 0) return { path: "v1/images/generations", body: fields }
  const path = "v1/images/edits"
  if (!upstream.kind.editsAsJson) return { path, body: formOf(fields, images) }
  return {
    path,
    body: { ...fields, images: images.map((bytes) => Buffer.from(bytes).toString("base64")) },
  }
}
