import { type ApiError, apiError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"

/** A field that is refused, unless its value asks for what happens anyway. */
interface RefusedField {
  readonly idle?: readonly (string | number)[]
  /** An empty list asks for nothing. */
  readonly isList?: true
  readonly instead?: string
}

/**
 * Fields of other image APIs that would change the picture and are not served: refused by name, so
 * that nobody gets another picture than the one asked for. A null asks for nothing. Fields that
 * nobody knows are ignored: clients send new ones.
 */
const ofBoth: Readonly<Record<string, RefusedField>> = {
  // OpenAI
  background: { idle: ["auto", "opaque"] },
  output_format: { idle: ["png"] },
  output_compression: { idle: [100] },
  quality: { idle: ["auto", "standard"], instead: "use num_steps" },
  style: { instead: "use lora, or say it in the prompt" },
  moderation: { idle: ["auto"] },
  // Stable Diffusion servers
  negative_prompt: { idle: [""] },
  width: { instead: "use size" },
  height: { instead: "use size" },
  steps: { instead: "use num_steps" },
  cfg_scale: { instead: "use guidance_scale" },
  scheduler: {},
  sampler_name: {},
  loras: { isList: true, instead: "use lora" },
  // of chats with this server, and what it is called elsewhere
  adapter: { instead: "use lora" },
  adapters: { isList: true, instead: "use lora" },
  mask: {},
  mask_image: {},
}

const toEdits = { instead: "use /v1/images/edits" }

const refused = {
  generation: {
    ...ofBoth,
    image: toEdits,
    images: { isList: true, ...toEdits },
    strength: toEdits,
  },
  edit: { ...ofBoth, input_fidelity: { idle: ["low"], instead: "use strength" } },
} as const satisfies Record<string, Readonly<Record<string, RefusedField>>>

/** Whether an edit has such a field. */
export const isRefused = (name: string): boolean => Object.hasOwn(refused.edit, name)

const isIdle = (value: Json, { idle, isList }: RefusedField): boolean =>
  Array.isArray(value)
    ? isList === true && value.length === 0
    : idle?.some((one) => one === value) === true

/** Returns 400 `unsupported_parameter` for the first such field. */
export const refusalOf =
  (kind: keyof typeof refused) =>
  (body: Json): ApiError | undefined => {
    if (typeof body !== "object" || body === null) return undefined
    const fields: Readonly<Record<string, RefusedField>> = refused[kind]
    for (const [param, value] of Object.entries(body)) {
      const field = Object.hasOwn(fields, param) ? fields[param] : undefined
      if (!field || value == null || isIdle(value, field)) continue
      const kept = field.idle ? `; it may be ${field.idle.map(shown).join(" or ")}` : ""
      const hint = field.instead ? `; ${field.instead} instead` : ""
      return apiError("unsupported_parameter", `${param}: is not supported${kept}${hint}.`, {
        param,
      })
    }
    return undefined
  }

const shown = (value: string | number): string => JSON.stringify(value)
