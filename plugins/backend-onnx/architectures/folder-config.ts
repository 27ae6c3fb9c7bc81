import {
  countIn,
  countOr,
  type Metadata,
  type MetadataValue,
  numberOr,
  numbersIn,
  present,
  textIn,
} from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import {
  type Architecture,
  type ArchitectureNames,
  architectureNamed,
  checked,
  type DecoderConfig,
  type Experts,
  epsilonOf,
  limits,
} from "./decoder-config.ts"
import { type AttentionKind, families, familyParts, isNth, kindsByPattern } from "./families.ts"
import { defaults, objectAt } from "./folder-json.ts"
import { refuseOthers } from "./folder-refusals.ts"
import { longAfterIn, rotaryIn, rotatedIn, sectionsIn, windowIn } from "./folder-rotary.ts"

export const configFile = "config.json"

const folderArchitectures: ArchitectureNames = {
  llama: "llama",
  mistral: "mistral",
  qwen2: "qwen2",
  qwen3: "qwen3",
  gemma3_text: "gemma3",
  // with a part that reads images, which is not used
  gemma3: "gemma3",
  smollm3: "smollm3",
  phi3: "phi3",
  qwen3_moe: "qwen3moe",
  // of models that read images; older files have no part for it
  qwen2_vl_text: "qwen2",
  qwen2_5_vl_text: "qwen2",
  qwen2_vl: "qwen2",
  qwen2_5_vl: "qwen2",
}

/** Chat models that read images: their decoder is in `text_config`, with an architecture of its own. */
const sighted: ReadonlySet<unknown> = new Set([
  ...["idefics3", "smolvlm", "llava"],
  ...["qwen2_vl", "qwen2_5_vl"],
])

/** Whether tokens of images have rows and columns for the decoder. */
export const readsGrids = (json: Metadata): boolean =>
  ["qwen2_vl", "qwen2_5_vl"].includes(String(json.get("model_type")))

/** Whether a folder's config.json is that of a decoder with a tower that reads images for it. */
export const readsImages = (json: Metadata): boolean => sighted.has(json.get("model_type"))

/** Whether it is that of a decoder with a part that hears for it. */
export const readsSounds = (json: Metadata): boolean => json.get("model_type") === "qwen2_audio"

/** What a `text_config` of Llama leaves out, as published models do. */
const llamaSizes: Metadata = new Map<string, MetadataValue>([
  ["hidden_size", 4096],
  ["intermediate_size", 11_008],
  ["num_hidden_layers", 32],
  ["num_attention_heads", 32],
  ["vocab_size", 32_000],
])

/** What the `text_config` of Qwen2-Audio leaves out. */
const qwenSizes: Metadata = new Map<string, MetadataValue>([
  ["hidden_size", 4096],
  ["intermediate_size", 22_016],
  ["num_hidden_layers", 32],
  ["num_attention_heads", 32],
  ["vocab_size", 151_936],
])

/** What the decoders of Qwen2-VL leave out, which is not what other Qwen2 do. */
const gridDefaults: Metadata = new Map<string, MetadataValue>([
  ["num_key_value_heads", 8],
  ["rope_theta", 1_000_000],
  ["rms_norm_eps", 1e-5],
  ["max_window_layers", 80],
])

/** The part of a config.json that is the decoder's. */
export const decoderPart = (whole: Metadata): Metadata =>
  new Map([...(readsGrids(whole) ? gridDefaults : []), ...namedPart(whole)])

const namedPart = (whole: Metadata): Metadata => {
  if (!present(whole, "text_config")) return whole
  const part = objectAt(whole, "text_config")
  if (readsSounds(whole)) return new Map([...qwenSizes, ...part])
  if (!readsImages(whole)) return part
  const isTied = whole.get("tie_word_embeddings") === true
  return new Map([
    ...(part.get("model_type") === "llama" ? llamaSizes : []),
    ...(isTied ? ([["tie_word_embeddings", true]] as const) : []),
    ...part,
  ])
}

/** The keys that say whether products have biases. */
const biasKeys: Readonly<
  Partial<Record<Architecture, { readonly attention: string; readonly feedForward?: string }>>
> = {
  llama: { attention: "attention_bias", feedForward: "mlp_bias" },
  smollm3: { attention: "attention_bias", feedForward: "mlp_bias" },
  qwen3: { attention: "attention_bias" },
  qwen3moe: { attention: "attention_bias" },
  gemma3: { attention: "attention_bias" },
}

/** Architectures whose sliding window is enabled with a switch. */
const switched: ReadonlySet<Architecture> = new Set(["qwen2", "qwen3", "qwen3moe", "smollm3"])

const maySlide = (json: Metadata, architecture: Architecture): boolean =>
  !switched.has(architecture) || json.get("use_sliding_window") === true

/** The sliding window: null is none, absent is the architecture's default. */
const slidingWindowIn = (json: Metadata, architecture: Architecture): number | undefined => {
  if (architecture === "llama") return undefined
  if (!maySlide(json, architecture)) return undefined
  if (!json.has("sliding_window")) return defaults[architecture].window
  return present(json, "sliding_window")
    ? countIn(json, "sliding_window", limits.contextTokens)
    : undefined
}

/** In layers of these, whatever kinds a file lists, transformers sees the same. */
const alike: ReadonlySet<Architecture> = new Set(["llama", "phi3", "qwen3moe"])

/**
 * The kind of each layer: newer files list them; Qwen names the first layer that uses the window,
 * Gemma every how many layers one does not, and SmolLM3 uses it where nothing is rotated.
 */
const kindsIn = (
  json: Metadata,
  architecture: Architecture,
  layers: number,
): readonly AttentionKind[] => {
  const { globalEvery, unrotatedEvery } = families[architecture]
  const first =
    architecture === "qwen2" || architecture === "qwen3"
      ? numberOr(json, "max_window_layers", 28)
      : 0
  const own = (): readonly AttentionKind[] => {
    if (globalEvery !== undefined)
      return kindsByPattern(
        layers,
        countOr(json, "sliding_window_pattern", limits.layers, globalEvery),
      )
    const slides =
      unrotatedEvery === undefined
        ? Array.from({ length: layers }, (_, layer) => layer >= first)
        : rotatedIn(json, architecture, layers).map((isRotated) => !isRotated)
    return slides.map((isSliding) => (isSliding ? "sliding_attention" : "full_attention"))
  }
  const listed: unknown = alike.has(architecture)
    ? undefined
    : (json.get("layer_types") ?? undefined)
  const kinds: unknown = listed ?? own()
  if (!Array.isArray(kinds) || kinds.length !== layers)
    throw new Damaged(`'layer_types' is not a list of ${layers}`)
  return kinds.map((kind: unknown, layer) => {
    if (kind !== "sliding_attention" && kind !== "full_attention")
      throw new Unsupported(`layer ${layer} is of the kind '${kind}', which this backend can't run`)
    if (kind === "sliding_attention" && listed !== undefined && !maySlide(json, architecture))
      throw new Unsupported(`layer ${layer} slides, and 'use_sliding_window' is not true`)
    return kind
  })
}

const layerNumbers = (json: Metadata, key: string): readonly number[] =>
  present(json, key) ? numbersIn(json, key) : []

/** Every n-th layer has experts, but for those that are listed. */
const expertsIn = (
  json: Metadata,
  architecture: Architecture,
  layers: number,
): Experts | undefined => {
  if (architecture !== "qwen3moe") return undefined
  // the hub's name, and that of transformers 5
  const named = present(json, "num_experts") ? "num_experts" : "num_local_experts"
  const count = countOr(json, named, limits.experts, 128)
  const every = countOr(json, "decoder_sparse_step", limits.layers, 1)
  const dense = layerNumbers(json, "mlp_only_layers")
  return {
    count,
    used: countOr(json, "num_experts_per_tok", count, Math.min(8, count)),
    feedForward: countOr(json, "moe_intermediate_size", limits.feedForward, 768),
    isNormalized: json.get("norm_topk_prob") === true,
    layers: Array.from(
      { length: layers },
      (_, layer) => isNth(every, layer) && !dense.includes(layer),
    ),
  }
}

/** By the switches of the architectures that have them; an absent one is left to the file. */
const biasesIn = (json: Metadata, architecture: Architecture): DecoderConfig["biases"] => {
  const { attention, feedForward } = biasKeys[architecture] ?? {}
  const switchOf = (key: string | undefined) => {
    const value: unknown = key === undefined ? undefined : json.get(key)
    return typeof value === "boolean" ? value : undefined
  }
  return { attention: switchOf(attention), feedForward: switchOf(feedForward) }
}

const attentionScaleIn = (json: Metadata, architecture: Architecture, headSize: number): number => {
  const size = architecture === "gemma3" ? numberOr(json, "query_pre_attn_scalar", 256) : headSize
  if (!(size > 0)) throw new Damaged(`'query_pre_attn_scalar' is ${size}`)
  return 1 / Math.sqrt(size)
}

/** Reads the parsed config.json of a folder. Throws `Damaged` and `Unsupported`. */
export const decoderConfig = (whole: Metadata): DecoderConfig => {
  const json = decoderPart(whole)
  const architecture = architectureNamed(
    textIn(readsImages(whole) || readsSounds(whole) ? json : whole, "model_type"),
    folderArchitectures,
  )
  refuseOthers(json, architecture)
  const known = defaults[architecture]
  const width = countIn(json, "hidden_size", limits.width)
  const heads =
    known.heads === undefined
      ? countIn(json, "num_attention_heads", limits.heads)
      : countOr(json, "num_attention_heads", limits.heads, known.heads)
  const layers = countIn(json, "num_hidden_layers", limits.layers)
  const headSize = countOr(json, "head_dim", limits.headSize, known.headSize ?? width / heads)
  const kinds = kindsIn(json, architecture, layers)
  const window = slidingWindowIn(json, architecture)
  const experts = expertsIn(json, architecture, layers)
  const sections = readsGrids(whole) ? sectionsIn(json, headSize) : undefined
  const longAfter = architecture === "phi3" ? longAfterIn(json) : undefined
  return checked({
    ...(longAfter !== undefined && { longAfter }),
    ...(experts && { experts }),
    ...(sections && { sections }),
    architecture,
    layers,
    width,
    feedForward: countIn(json, "intermediate_size", limits.feedForward),
    heads,
    kvHeads: json.has("num_key_value_heads")
      ? countOr(json, "num_key_value_heads", heads, heads)
      : (known.kvHeads ?? heads),
    headSize,
    vocabulary:
      known.vocabulary === undefined
        ? countIn(json, "vocab_size", 2 ** 24)
        : countOr(json, "vocab_size", 2 ** 24, known.vocabulary),
    normEpsilon: epsilonOf(
      "rms_norm_eps",
      numberOr(json, "rms_norm_eps", known.normEpsilon ?? 1e-6),
    ),
    rotary: Number.isInteger(headSize / 2) ? rotaryIn(json, architecture, kinds, headSize) : [],
    contextTokens: windowIn(json, architecture),
    windows: kinds.map((kind) => (kind === "sliding_attention" ? window : undefined)),
    tiedHead: (json.get("tie_word_embeddings") ?? known.tiedHead) === true,
    biases: biasesIn(json, architecture),
    attentionScale: attentionScaleIn(json, architecture, headSize),
    ...familyParts(architecture, width),
  })
}

/** Whether a folder's config.json names an architecture that the decoder graph implements. */
export const isKnownArchitecture = (folder: string): boolean => {
  const json = readJson(folder, configFile)
  const named = readsImages(json) || readsSounds(json) ? decoderPart(json) : json
  return Object.hasOwn(folderArchitectures, String(named.get("model_type")))
}

/** Reads a folder's config.json. Throws `ModelFileError`. */
export const folderConfig = (folder: string): DecoderConfig => {
  const json = readJson(folder, configFile)
  return explaining(`${folder}/${configFile}`, () => decoderConfig(json))
}
