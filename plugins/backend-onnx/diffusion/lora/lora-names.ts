/** Whose layers a tensor adapts: the denoiser's, or those of a folder such as `text_encoder`. */
export type Adapted = "denoiser" | `text_encoder${"" | "_2" | "_3"}`

/** What the name of a tensor in a file of a LoRA says. */
export interface LoraTensor {
  readonly of: Adapted
  /** The layer's name as the file has it, without what is before and behind it. */
  readonly layer: string
  /** kohya's scripts write all dots of a name as underscores. */
  readonly underscored: boolean
  readonly side: "a" | "b" | "alpha"
}

const sides: Readonly<Record<string, LoraTensor["side"]>> = {
  lora_A: "a",
  lora_B: "b",
  "lora_A.default": "a",
  "lora_B.default": "b",
  lora_down: "a",
  lora_up: "b",
  "lora.down": "a",
  "lora.up": "b",
  "lora_linear_layer.down": "a",
  "lora_linear_layer.up": "b",
}

const kohyaParts: Readonly<Record<string, Adapted>> = {
  unet: "denoiser",
  transformer: "denoiser",
  te: "text_encoder",
  te1: "text_encoder",
  te2: "text_encoder_2",
  te3: "text_encoder_3",
}

const wrappers =
  /^(?:base_model\.model\.)?(?:(transformer|unet|diffusion_model|text_encoder(?:_[23])?)\.)?/

// attention processors of diffusers before 0.20 had the matrices of a LoRA beside the layers
const processor = /\.processor\.(to_[qkv]|to_out|add_[kv]_proj)_(lora\.(?:down|up))$/

const partOf = (wrapper: string | undefined): Adapted =>
  wrapper?.startsWith("text_encoder") ? (wrapper as Adapted) : "denoiser"

/** Reads the name of a tensor; undefined: it is not one of a plain LoRA. */
export const parseLoraName = (tensor: string): LoraTensor | undefined => {
  const end = /\.(?:(alpha)|(.+)\.weight)$/.exec(tensor)
  if (!end) return undefined
  const kohya = /^lora_([a-z]+[123]?)_([^.]+)\.(?:alpha|(lora_down|lora_up)\.weight)$/.exec(tensor)
  if (kohya) {
    const of = kohyaParts[kohya[1]!]
    const side = kohya[3] === undefined ? "alpha" : sides[kohya[3]]!
    return of && { of, layer: kohya[2]!, underscored: true, side }
  }
  const [prefix, wrapper] = wrappers.exec(tensor)!
  const name = tensor.slice(prefix.length).replace(/\.(?:weight|alpha)$/, "")
  const base = { of: partOf(wrapper), underscored: false }
  if (end[1]) return { ...base, layer: name.replace(/\.lora$/, ""), side: "alpha" }
  const plain = name.replace(
    processor,
    (_, layer: string, side: string) => `.${layer === "to_out" ? "to_out.0" : layer}.${side}`,
  )
  const found =
    /^(.+?)\.(lora(?:_[AB](?:\.default)?|_down|_up|(?:_linear_layer)?\.(?:down|up)))$/.exec(plain)
  return found ? { ...base, layer: found[1]!, side: sides[found[2]!]! } : undefined
}
