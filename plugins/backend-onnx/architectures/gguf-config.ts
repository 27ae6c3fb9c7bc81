import type { GgufFile } from "../weights/gguf-file.ts"
import {
  countIn,
  countOr,
  type Metadata,
  numberIn,
  numberOr,
  textIn,
} from "../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
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
import { type AttentionKind, families, familyParts, kindsByPattern } from "./families.ts"
import { type Key, longAfterIn, rotaryIn, windowIn } from "./gguf-rotary.ts"

// GGUF files of Mistral name the architecture llama
const ggufArchitectures: ArchitectureNames = {
  llama: "llama",
  qwen2: "qwen2",
  qwen3: "qwen3",
  gemma3: "gemma3",
  smollm3: "smollm3",
  phi3: "phi3",
  qwen3moe: "qwen3moe",
}

const layerSizes = ["attention.head_count", "attention.head_count_kv", "feed_forward_length"]

/** Returns one number for sizes that the file has for each layer. Throws where layers differ. */
const evenLayers = (metadata: Metadata, key: Key): Metadata => {
  const even = new Map(metadata)
  for (const name of layerSizes.map(key)) {
    const sizes = metadata.get(name)
    if (!Array.isArray(sizes)) continue
    if (new Set(sizes).size > 1)
      throw new Unsupported(
        `'${name}' differs between layers (${[...new Set(sizes)].slice(0, 5).join(", ")}), which this backend can't do`,
      )
    if (sizes.length > 0) even.set(name, sizes[0])
  }
  return even
}

/** The kind of each layer, where an architecture has several. */
const kindsIn = (
  metadata: Metadata,
  key: Key,
  architecture: Architecture,
  layers: number,
): readonly AttentionKind[] => {
  const { globalEvery } = families[architecture]
  const pattern = metadata.get(key("attention.sliding_window_pattern"))
  // without a window no layer is a local one, as in llama.cpp
  if (globalEvery !== undefined && !numberOr(metadata, key("attention.sliding_window"), 0))
    return new Array<AttentionKind>(layers).fill("full_attention")
  if (globalEvery === undefined) return new Array<AttentionKind>(layers).fill("sliding_attention")
  if (pattern === undefined || typeof pattern === "number")
    return kindsByPattern(layers, pattern ?? globalEvery)
  if (!Array.isArray(pattern) || pattern.length !== layers)
    throw new Damaged(`'${key("attention.sliding_window_pattern")}' is not a list of ${layers}`)
  return pattern.map((isSliding) => (isSliding ? "sliding_attention" : "full_attention"))
}

/** llama.cpp knows the one Gemma 3 that scales by another size than its heads' by its layers. */
const attentionScaleOf = (
  architecture: Architecture,
  {
    layers,
    width,
    heads,
    headSize,
  }: Pick<DecoderConfig, "layers" | "width" | "heads" | "headSize">,
): number => 1 / Math.sqrt(architecture === "gemma3" && layers === 62 ? width / heads : headSize)

const refuseSoftcaps = (metadata: Metadata, key: Key): void => {
  for (const name of ["final_logit_softcapping", "attn_logit_softcapping"])
    if (metadata.get(key(name)))
      throw new Unsupported(
        `'${key(name)}' is ${metadata.get(key(name))}, which this backend can't do`,
      )
}

const refuseBothDirections = (metadata: Metadata, key: Key): void => {
  const name = key("attention.causal")
  if (metadata.get(name) === false)
    throw new Unsupported(
      `'${name}' is false: its tokens see what follows them, which this backend can't do here`,
    )
}

const expertsIn = (
  file: GgufFile,
  key: Key,
  architecture: Architecture,
  layers: number,
): Experts | undefined => {
  const { metadata } = file.header
  const count = metadata.get(key("expert_count"))
  if (count === undefined || count === 0) return undefined
  if (architecture !== "qwen3moe")
    throw new Unsupported(
      `it is a mixture of ${count} experts, which this backend runs of Qwen3 only`,
    )
  const experts = countIn(metadata, key("expert_count"), limits.experts)
  return {
    count: experts,
    used: countIn(metadata, key("expert_used_count"), experts),
    feedForward: countIn(metadata, key("expert_feed_forward_length"), limits.feedForward),
    isNormalized: true,
    layers: Array.from({ length: layers }, (_, layer) =>
      file.has(`blk.${layer}.ffn_gate_inp.weight`),
    ),
  }
}

/** Reads the configuration from a GGUF file's metadata. Throws `Damaged`. */
export const ggufConfig = (file: GgufFile): DecoderConfig => {
  const { metadata: asWritten } = file.header
  const architecture = architectureNamed(
    textIn(asWritten, "general.architecture"),
    ggufArchitectures,
  )
  const key = (name: string) => `${architecture}.${name}`
  const metadata = evenLayers(asWritten, key)
  refuseSoftcaps(metadata, key)
  refuseBothDirections(metadata, key)
  const width = countIn(metadata, key("embedding_length"), limits.width)
  const heads = countIn(metadata, key("attention.head_count"), limits.heads)
  const kvHeads = countOr(metadata, key("attention.head_count_kv"), heads, heads)
  const headSize = countOr(metadata, key("attention.key_length"), limits.headSize, width / heads)
  const valueSize = numberOr(metadata, key("attention.value_length"), headSize)
  if (valueSize !== headSize)
    throw new Unsupported(
      `its values have ${valueSize} numbers and its keys ${headSize}; this backend runs equal ones`,
    )
  const layers = countIn(metadata, key("block_count"), limits.layers)
  const window = numberOr(metadata, key("attention.sliding_window"), 0)
  const kinds = kindsIn(metadata, key, architecture, layers)
  const longAfter = longAfterIn(file, key)
  const experts = expertsIn(file, key, architecture, layers)
  const epsilonKey = key("attention.layer_norm_rms_epsilon")
  return checked({
    ...(longAfter !== undefined && { longAfter }),
    ...(experts && { experts }),
    architecture,
    layers,
    width,
    feedForward: countIn(metadata, key("feed_forward_length"), limits.feedForward),
    heads,
    kvHeads,
    headSize,
    vocabulary: file.tensor("token_embd.weight").rows,
    normEpsilon: epsilonOf(epsilonKey, numberIn(metadata, epsilonKey)),
    rotary: Number.isInteger(headSize / 2)
      ? rotaryIn(file, key, architecture, kinds, headSize)
      : [],
    contextTokens: windowIn(metadata, key),
    windows: kinds.map((kind) => (kind === "sliding_attention" && window ? window : undefined)),
    tiedHead: !file.has("output.weight"),
    attentionScale: attentionScaleOf(architecture, { layers, width, heads, headSize }),
    ...familyParts(architecture, width),
  })
}
