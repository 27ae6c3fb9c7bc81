import { randomInt } from "node:crypto"
import { Effect } from "effect"
import { isLongerThan } from "../../core/characters.ts"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ImageSetting } from "../../core/ports/image.ts"
import type { Adapter, ImageRequest, LoadedModel } from "../../core/ports/model.ts"
import {
  type EditBody,
  type GenerationBody,
  type ImageBody,
  maxPromptCharacters,
} from "./schema.ts"
import { editSize, generationSize, type Size } from "./size.ts"
import { readSources } from "./source-decoding.ts"

const none = "none"
const defaults = { steps: 4, guidanceScale: 1, loraStrength: 0.6, strength: 0.75 }

/** How many seeds there are: 0 to 2^31-1. */
const seeds = 2 ** 31

const wrong = (param: string, why: string): ApiError =>
  apiError("invalid_request_error", `${param}: ${why}`, { param })

const checkPrompt = ({ prompt }: ImageBody): Effect.Effect<void, ApiError> =>
  isLongerThan(prompt, maxPromptCharacters)
    ? Effect.fail(
        apiError(
          "context_length_exceeded",
          `prompt: must have at most ${maxPromptCharacters.toLocaleString("en")} characters`,
          { param: "prompt" },
        ),
      )
    : Effect.void

const sized = (size: Size | string): Effect.Effect<Size, ApiError> =>
  typeof size === "string" ? Effect.fail(wrong("size", size)) : Effect.succeed(size)

/** `open`: ids of the model's LoRAs. A strength beside `none` says nothing. */
export const adapterOf = (
  { lora, lora_strength }: ImageBody,
  open: readonly string[],
): Effect.Effect<Adapter | undefined, ApiError> => {
  if (lora == null || lora === none) return Effect.succeed(undefined)
  if (open.includes(lora))
    return Effect.succeed({ id: lora, strength: lora_strength ?? defaults.loraStrength })
  const choices = [none, ...open].map((id) => `'${id}'`).join(", ")
  return Effect.fail(wrong("lora", `must be one of ${choices}`))
}

/** What both endpoints ask of a model; the LoRA is known only once the model is open. */
export interface Asked {
  readonly request: Omit<ImageRequest, "adapter">
  /** Digests of the source images. */
  readonly sources: readonly string[]
}

/** A request with the model's own defaults where the client left a setting out. */
export const withDefaults = (
  request: Asked["request"],
  own: LoadedModel["imageDefaults"] = {},
): Asked["request"] => {
  const left = Object.entries(own).filter(([setting]) =>
    request.unsaid?.includes(setting as ImageSetting),
  )
  return { ...request, ...Object.fromEntries(left) }
}

const asked = (body: ImageBody, size: Size): Omit<ImageRequest, "images"> => {
  const { prompt, seed, guidance_scale, num_steps, num_inference_steps } = body
  const previews = body.stream === true ? (body.partial_images ?? 0) : 0
  const steps = num_steps ?? num_inference_steps
  const isDrawn = seed == null || seed < 0
  const unsaid: readonly ImageSetting[] = [
    ...(steps == null ? ["steps" as const] : []),
    ...(isDrawn ? ["seed" as const] : []),
    ...(guidance_scale == null ? ["guidanceScale" as const] : []),
  ]
  return {
    prompt,
    width: size.width,
    height: size.height,
    steps: steps ?? defaults.steps,
    seed: isDrawn ? randomInt(seeds) : seed,
    guidanceScale: guidance_scale ?? defaults.guidanceScale,
    ...(previews > 0 && { previews }),
    ...(unsaid.length > 0 && { unsaid }),
  }
}

export const readGeneration = (body: GenerationBody): Effect.Effect<Asked, ApiError> =>
  Effect.gen(function* () {
    yield* checkPrompt(body)
    const size = yield* sized(generationSize(body.size))
    return { request: { ...asked(body, size), images: [] }, sources: [] }
  })

export const readEdit = (body: EditBody): Effect.Effect<Asked, ApiError> =>
  Effect.gen(function* () {
    yield* checkPrompt(body)
    const sources = yield* readSources(body)
    const { unsaid = [], ...own } = asked(body, yield* sized(editSize(body.size, sources[0])))
    const left: readonly ImageSetting[] = body.strength == null ? [...unsaid, "strength"] : unsaid
    const request = {
      ...own,
      ...(left.length > 0 && { unsaid: left }),
      images: sources.map(({ bytes }) => bytes),
      strength: body.strength ?? defaults.strength,
    }
    return { request, sources: sources.map(({ digest }) => digest) }
  })
