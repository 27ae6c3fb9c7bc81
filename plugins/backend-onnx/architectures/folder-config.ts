import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import {
  type Architecture,
  type ArchitectureNames,
  architectureNamed,
  checked,
  type DecoderConfig,
  limits,
} from "./decoder-config.ts"
import { type AttentionKind, families, familyParts, kindsByPattern } from "./families.ts"
import { type Rotary, rotationsOf, scaledBy } from "./rotary.ts"

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
}

/** Defaults of keys that config.json leaves out, from the configuration classes of transformers. */
const defaults: Readonly<
  Record<
    Architecture,
    {
      readonly heads?: number
      readonly kvHeads?: number
      readonly headSize?: number
      readonly contextTokens: number
      readonly window?: number
      readonly vocabulary?: number
      readonly ropeBase?: number
      readonly tiedHead?: true
    }
  >
> = {
  llama: { contextTokens: 2048 },
  mistral: { kvHeads: 8, contextTokens: 131_072, window: 4096 },
  qwen2: { kvHeads: 32, contextTokens: 32_768, window: 4096 },
  qwen3: { kvHeads: 32, headSize: 128, contextTokens: 32_768, window: 4096 },
  gemma3: {
    heads: 8,
    kvHeads: 4,
    headSize: 256,
    contextTokens: 131_072,
    window: 4096,
    vocabulary: 262_208,
    ropeBase: 1_000_000,
    tiedHead: true,
  },
  smollm3: { kvHeads: 4, contextTokens: 32_768, ropeBase: 2_000_000, tiedHead: true },
}

/** In these files `null` stands for an absent value. */
const present = (json: Metadata, key: string): boolean => (json.get(key) ?? undefined) !== undefined
const countOr = (json: Metadata, key: string, most: number, byDefault: number): number =>
  present(json, key) ? countIn(json, key, most) : byDefault
const numberOr = (json: Metadata, key: string, byDefault: number): number =>
  present(json, key) ? numberIn(json, key) : byDefault

const refuseOthers = (json: Metadata, architecture: Architecture): void => {
  if (present(json, "quantization_config"))
    throw new Unsupported(
      "its weights are quantized in a way that this backend can't read ('quantization_config')",
      "Name the model's plain files, or a GGUF file",
    )
  const { activation } = familyParts(architecture, 1)
  const wanted = activation === "gelu" ? "gelu_pytorch_tanh" : "silu"
  for (const key of ["hidden_act", "hidden_activation"])
    if (present(json, key) && json.get(key) !== wanted)
      throw new Unsupported(`'${key}' is '${json.get(key)}'; this backend runs '${wanted}'`)
  for (const key of [
    "final_logit_softcapping",
    "attn_logit_softcapping",
    "use_bidirectional_attention",
  ])
    if (json.get(key)) throw new Unsupported(`it has '${key}', which this backend can't do`)
  if (numberOr(json, "partial_rotary_factor", 1) !== 1)
    throw new Unsupported("it rotates a part of its dimensions, which this backend can't do")
}

const objectAt = (json: Metadata, key: string): Metadata => {
  const value: unknown = json.get(key) ?? {}
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Damaged(`'${key}' is not an object`)
  return new Map(Object.entries(value))
}

const scalingIn = (json: Metadata): Metadata =>
  objectAt(json, present(json, "rope_parameters") ? "rope_parameters" : "rope_scaling")

const rotationsIn = (scaling: Metadata, base: number, headSize: number): readonly number[] =>
  scaledBy(rotationsOf(numberOr(scaling, "rope_theta", base), headSize), scaling)

/** Rotations of layers of each kind, which newer files name, and older ones by keys of their own. */
const rotaryByKind = (
  json: Metadata,
  ropeBase: number,
  localBase: number,
  headSize: number,
): Readonly<Record<AttentionKind, Rotary>> => {
  const all = scalingIn(json)
  const byKind = all.has("full_attention") || all.has("sliding_attention")
  return {
    full_attention: {
      rotations: rotationsIn(
        byKind ? objectAt(all, "full_attention") : all,
        numberOr(json, "rope_theta", ropeBase),
        headSize,
      ),
    },
    sliding_attention: {
      rotations: rotationsIn(
        byKind ? objectAt(all, "sliding_attention") : new Map(),
        numberOr(json, "rope_local_base_freq", localBase),
        headSize,
      ),
    },
  }
}

/** Whether each layer has a rotary embedding. */
const rotatedIn = (
  json: Metadata,
  architecture: Architecture,
  layers: number,
): readonly boolean[] => {
  const { unrotatedEvery } = families[architecture]
  if (unrotatedEvery === undefined) return new Array<boolean>(layers).fill(true)
  const every = countOr(json, "no_rope_layer_interval", limits.layers, unrotatedEvery)
  // ones and zeros: despite its name, a one is a layer with a rotary embedding
  const listed: unknown =
    json.get("no_rope_layers") ??
    Array.from({ length: layers }, (_, i) => Number((i + 1) % every > 0))
  if (!Array.isArray(listed) || listed.length !== layers)
    throw new Damaged(`'no_rope_layers' is not a list of ${layers}`)
  return listed.map(Boolean)
}

const rotaryIn = (
  json: Metadata,
  architecture: Architecture,
  kinds: readonly AttentionKind[],
  headSize: number,
): readonly (Rotary | undefined)[] => {
  const { ropeBase = 10_000 } = defaults[architecture]
  const { localBase } = families[architecture]
  if (localBase !== undefined) {
    const rotary = rotaryByKind(json, ropeBase, localBase, headSize)
    return kinds.map((kind) => rotary[kind])
  }
  const base = numberOr(json, "rope_theta", ropeBase)
  const rotary: Rotary = { rotations: rotationsIn(scalingIn(json), base, headSize) }
  return rotatedIn(json, architecture, kinds.length).map((isRotated) =>
    isRotated ? rotary : undefined,
  )
}

/** Architectures whose sliding window is enabled with a switch. */
const switched: ReadonlySet<Architecture> = new Set(["qwen2", "qwen3", "smollm3"])

/** The sliding window: null is none, absent is the architecture's default. */
const windowIn = (json: Metadata, architecture: Architecture): number | undefined => {
  if (architecture === "llama") return undefined
  if (switched.has(architecture) && json.get("use_sliding_window") !== true) return undefined
  if (!json.has("sliding_window")) return defaults[architecture].window
  return present(json, "sliding_window")
    ? countIn(json, "sliding_window", limits.contextTokens)
    : undefined
}

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
  const kinds: unknown = json.get("layer_types") ?? own()
  if (!Array.isArray(kinds) || kinds.length !== layers)
    throw new Damaged(`'layer_types' is not a list of ${layers}`)
  return kinds.map((kind: unknown, layer) => {
    if (kind !== "sliding_attention" && kind !== "full_attention")
      throw new Unsupported(`layer ${layer} is of the kind '${kind}', which this backend can't run`)
    return kind
  })
}

const attentionScaleIn = (json: Metadata, architecture: Architecture, headSize: number): number => {
  const size = architecture === "gemma3" ? numberOr(json, "query_pre_attn_scalar", 256) : headSize
  if (!(size > 0)) throw new Damaged(`'query_pre_attn_scalar' is ${size}`)
  return 1 / Math.sqrt(size)
}

const fromJson = (whole: Metadata): DecoderConfig => {
  const architecture = architectureNamed(textIn(whole, "model_type"), folderArchitectures)
  const json = present(whole, "text_config") ? objectAt(whole, "text_config") : whole
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
  const window = windowIn(json, architecture)
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
    vocabulary:
      known.vocabulary === undefined
        ? countIn(json, "vocab_size", 2 ** 24)
        : countOr(json, "vocab_size", 2 ** 24, known.vocabulary),
    normEpsilon: numberOr(json, "rms_norm_eps", 1e-6),
    rotary: Number.isInteger(headSize / 2) ? rotaryIn(json, architecture, kinds, headSize) : [],
    contextTokens: countOr(
      json,
      "max_position_embeddings",
      limits.contextTokens,
      known.contextTokens,
    ),
    windows: kinds.map((kind) => (kind === "sliding_attention" ? window : undefined)),
    tiedHead: (json.get("tie_word_embeddings") ?? known.tiedHead) === true,
    attentionScale: attentionScaleIn(json, architecture, headSize),
    ...familyParts(architecture, width),
  })
}

/** Whether a folder's config.json names an architecture that the decoder graph implements. */
export const isKnownArchitecture = (folder: string): boolean =>
  Object.hasOwn(folderArchitectures, String(readJson(folder, configFile).get("model_type")))

/** Reads a folder's config.json. Throws `ModelFileError`. */
export const folderConfig = (folder: string): DecoderConfig => {
  const json = readJson(folder, configFile)
  return explaining(`${folder}/${configFile}`, () => fromJson(json))
}
