import { numberField } from "./play-request.js"

/** Seeds go from 0 to one less. */
const seeds = 2 ** 31

/** The seed that is written, or else a random one: pictures are compared by one seed. */
export const seedOf = (text, random = Math.random) =>
  text ? Number(text) : Math.floor(random() * seeds)

const lookOf = ({ lora, strength }) => (lora ? { lora, lora_strength: Number(strength) } : {})

/**
 * The bodies of pictures that differ in nothing but their LoRAs. `looks`: `{ lora, strength }`, a LoRA "" is none;
 * `images`: data URIs, which make it an edit.
 */
export const imageBodies = (fields, { looks, images, seed }) => {
  const { model, prompt, size, num_steps: steps, guidance_scale: guidance, strength } = fields
  const common = {
    model,
    prompt,
    ...(size && { size }),
    ...numberField("num_steps", steps),
    ...numberField("guidance_scale", guidance),
    seed,
    ...(images.length > 0 && { images, ...numberField("strength", strength) }),
  }
  return looks.map((look) => ({ ...common, ...lookOf(look) }))
}

/** Bytes of a file that came as base64. */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
