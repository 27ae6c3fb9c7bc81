import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import {
  type Architecture,
  architectureNamed,
  architectures,
  checked,
  type DecoderConfig,
  limits,
} from "./decoder-config.ts"
import { rotationsOf, scaledBy } from "./rotary.ts"

export const configFile = "config.json"

/** Defaults of keys that config.json leaves out, from the configuration classes of transformers. */
const defaults: Readonly<
  Record<
    Architecture,
    {
      readonly kvHeads?: number
      readonly headSize?: number
      readonly contextTokens: number
      readonly window?: number
    }
  >
> = {
  llama: { contextTokens: 2048 },
  mistral: { kvHeads: 8, contextTokens: 131_072, window: 4096 },
  qwen2: { kvHeads: 32, contextTokens: 32_768, window: 4096 },
  qwen3: { kvHeads: 32, headSize: 128, contextTokens: 32_768, window: 4096 },
}

/** In these files `null` stands for an absent value. */
const present = (json: Metadata, key: string): boolean => (json.get(key) ?? undefined) !== undefined
const countOr = (json: Metadata, key: string, most: number, byDefault: number): number =>
  present(json, key) ? countIn(json, key, most) : byDefault
const numberOr = (json: Metadata, key: string, byDefault: number): number =>
  present(json, key) ? numberIn(json, key) : byDefault

const refuseOthers = (json: Metadata): void => {
  if (present(json, "quantization_config"))
    throw new Unsupported(
      "its weights are quantized in a way that this backend can't read ('quantization_config')",
      "Name the model's plain files, or a GGUF file",
    )
  if (present(json, "hidden_act") && json.get("hidden_act") !== "silu")
    throw new Unsupported(`'hidden_act' is '${json.get("hidden_act")}'; this backend runs 'silu'`)
  if (numberOr(json, "partial_rotary_factor", 1) !== 1)
    throw new Unsupported("it rotates a part of its dimensions, which this backend can't do")
}

const objectAt = (json: Metadata, key: string): Metadata => {
  const value: unknown = json.get(key) ?? {}
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Damaged(`'${key}' is not an object`)
  return new Map(Object.entries(value))
}

const rotationsIn = (json: Metadata, headSize: number): readonly number[] => {
  const scaling = objectAt(
    json,
    present(json, "rope_parameters") ? "rope_parameters" : "rope_scaling",
  )
  const base = numberOr(scaling, "rope_theta", numberOr(json, "rope_theta", 10_000))
  return scaledBy(rotationsOf(base, headSize), scaling)
}

const isQwen = (architecture: Architecture): boolean =>
  architecture === "qwen2" || architecture === "qwen3"

/**
 * The sliding window: null is none, absent is the architecture's default. Qwen enables it with a
 * switch.
 */
const windowIn = (json: Metadata, architecture: Architecture): number | undefined => {
  if (isQwen(architecture) ? json.get("use_sliding_window") !== true : architecture !== "mistral")
    return undefined
  if (!json.has("sliding_window")) return defaults[architecture].window
  return present(json, "sliding_window")
    ? countIn(json, "sliding_window", limits.contextTokens)
    : undefined
}

/**
 * The window of each layer: Qwen names the first layer that uses it, newer files list the type of
 * every layer.
 */
const windowsIn = (
  json: Metadata,
  architecture: Architecture,
  layers: number,
): readonly (number | undefined)[] => {
  const window = windowIn(json, architecture)
  const first = isQwen(architecture) ? numberOr(json, "max_window_layers", 28) : 0
  const kinds: unknown =
    json.get("layer_types") ??
    Array.from({ length: layers }, (_, layer) =>
      layer < first ? "full_attention" : "sliding_attention",
    )
  if (!Array.isArray(kinds) || kinds.length !== layers)
    throw new Damaged(`'layer_types' is not a list of ${layers}`)
  return kinds.map((kind: unknown, layer) => {
    if (kind !== "sliding_attention" && kind !== "full_attention")
      throw new Unsupported(`layer ${layer} is of the kind '${kind}', which this backend can't run`)
    return kind === "sliding_attention" ? window : undefined
  })
}

const fromJson = (json: Metadata): DecoderConfig => {
  const architecture = architectureNamed(textIn(json, "model_type"))
  refuseOthers(json)
  const known = defaults[architecture]
  const width = countIn(json, "hidden_size", limits.width)
  const heads = countIn(json, "num_attention_heads", limits.heads)
  const layers = countIn(json, "num_hidden_layers", limits.layers)
  const headSize = countOr(json, "head_dim", limits.headSize, known.headSize ?? width / heads)
  return checked({
    architecture,
    layers,
    width,
    feedForward: countIn(json, "intermediate_size", limits.feedForward),
    heads,
    kvHeads: json.has("num_key_value_heads")
      ? countOr(json, "num_key_value_heads", heads, heads)
      : (known.kvHeads ?? heads),
    headSize,
    vocabulary: countIn(json, "vocab_size", 2 ** 24),
    normEpsilon: numberOr(json, "rms_norm_eps", 1e-6),
    rotations: Number.isInteger(headSize / 2) ? rotationsIn(json, headSize) : [],
    contextTokens: countOr(
      json,
      "max_position_embeddings",
      limits.contextTokens,
      known.contextTokens,
    ),
    windows: windowsIn(json, architecture, layers),
    tiedHead: json.get("tie_word_embeddings") === true,
    headNorms: architecture === "qwen3",
  })
}

/** Whether a folder's config.json names an architecture that the decoder graph implements. */
export const isKnownArchitecture = (folder: string): boolean =>
  architectures.some(
    (architecture) => architecture === readJson(folder, configFile).get("model_type"),
  )

/** Reads a folder's config.json. Throws `ModelFileError`. */
export const folderConfig = (folder: string): DecoderConfig => {
  const json = readJson(folder, configFile)
  return explaining(`${folder}/${configFile}`, () => fromJson(json))
}
