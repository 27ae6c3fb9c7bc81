import type { GgufFile } from "../weights/gguf-file.ts"
import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { vectorOf } from "../weights/matrix.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import {
  type Architecture,
  architectureNamed,
  checked,
  type DecoderConfig,
  limits,
} from "./decoder-config.ts"
import { linearlyScaled, rotationsOf } from "./rotary.ts"

// GGUF files of Mistral name the architecture llama
const ggufArchitectures: readonly Architecture[] = ["llama", "qwen2", "qwen3"]

const factorsTensor = "rope_freqs.weight"

const rotationsIn = (
  file: GgufFile,
  key: (name: string) => string,
  headSize: number,
): readonly number[] => {
  const { metadata } = file.header
  const rotary = metadata.has(key("rope.dimension_count"))
    ? countIn(metadata, key("rope.dimension_count"), limits.headSize)
    : headSize
  if (rotary !== headSize)
    throw new Unsupported(
      `it rotates ${rotary} of ${headSize} dimensions, which this backend can't do`,
    )
  const plain = rotationsOf(
    metadata.has(key("rope.freq_base")) ? numberIn(metadata, key("rope.freq_base")) : 10_000,
    headSize,
  )
  const factors = file.has(factorsTensor) ? vectorOf(file, factorsTensor, headSize / 2) : undefined
  const own = plain.map((rotation, i) => rotation / (factors?.[i] ?? 1))
  if (!own.every((rotation) => Number.isFinite(rotation)))
    throw new Damaged(`the tensor '${factorsTensor}' holds an impossible factor`)
  return scaled(own, metadata, key)
}

const scaled = (
  rotations: readonly number[],
  metadata: Metadata,
  key: (name: string) => string,
): readonly number[] => {
  const type = metadata.get(key("rope.scaling.type"))
  if (type === "linear")
    return linearlyScaled(rotations, numberIn(metadata, key("rope.scaling.factor")))
  if (type !== undefined && type !== "none")
    throw new Unsupported(
      `its rotary embedding is scaled by '${type}'; this backend knows linear, and factors in '${factorsTensor}'`,
    )
  // files from before scaling had a type
  const old = key("rope.scale_linear")
  return metadata.has(old) ? linearlyScaled(rotations, numberIn(metadata, old)) : rotations
}

const refuseParts = (metadata: Metadata): void => {
  const parts = metadata.get("split.count")
  if (typeof parts === "number" && parts > 1)
    throw new Unsupported(
      `it is one of ${parts} parts`,
      "Join them with llama.cpp's `llama-gguf-split --merge`, or name a file in one piece",
    )
}

const refuseExperts = (metadata: Metadata, key: (name: string) => string): void => {
  const experts = metadata.get(key("expert_count"))
  if (experts !== undefined && experts !== 0)
    throw new Unsupported(`it is a mixture of ${experts} experts, which this backend can't run`)
}

/** Reads the configuration from a GGUF file's metadata. Throws `Damaged`. */
export const ggufConfig = (file: GgufFile): DecoderConfig => {
  const { metadata } = file.header
  const architecture = architectureNamed(
    textIn(metadata, "general.architecture"),
    ggufArchitectures,
  )
  const key = (name: string) => `${architecture}.${name}`
  refuseParts(metadata)
  refuseExperts(metadata, key)
  const width = countIn(metadata, key("embedding_length"), limits.width)
  const heads = countIn(metadata, key("attention.head_count"), limits.heads)
  const kvHeads = metadata.has(key("attention.head_count_kv"))
    ? countIn(metadata, key("attention.head_count_kv"), heads)
    : heads
  const headSize = metadata.has(key("attention.key_length"))
    ? countIn(metadata, key("attention.key_length"), limits.headSize)
    : width / heads
  const valueSize = metadata.has(key("attention.value_length"))
    ? numberIn(metadata, key("attention.value_length"))
    : headSize
  if (valueSize !== headSize)
    throw new Unsupported(
      `its values have ${valueSize} numbers and its keys ${headSize}; this backend runs equal ones`,
    )
  const layers = countIn(metadata, key("block_count"), limits.layers)
  const window = metadata.has(key("attention.sliding_window"))
    ? numberIn(metadata, key("attention.sliding_window"))
    : 0
  return checked({
    architecture,
    layers,
    width,
    feedForward: countIn(metadata, key("feed_forward_length"), limits.feedForward),
    heads,
    kvHeads,
    headSize,
    vocabulary: file.tensor("token_embd.weight").rows,
    normEpsilon: numberIn(metadata, key("attention.layer_norm_rms_epsilon")),
    rotations: Number.isInteger(headSize / 2) ? rotationsIn(file, key, headSize) : [],
    contextTokens: countIn(metadata, key("context_length"), limits.contextTokens),
    windows: new Array<number | undefined>(layers).fill(window || undefined),
    tiedHead: !file.has("output.weight"),
    headNorms: architecture === "qwen3",
  })
}
