import type { GgufFile } from "../weights/gguf-file.ts"
import { countIn, Damaged, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"

/** The shape of a Llama-family decoder. */
export interface LlamaConfig {
  readonly layers: number
  /** Width of the residual stream. */
  readonly width: number
  readonly feedForward: number
  readonly heads: number
  readonly kvHeads: number
  readonly headSize: number
  readonly vocabulary: number
  readonly normEpsilon: number
  readonly ropeBase: number
  /** The model's own window, in tokens; at most `maxWindow`. */
  readonly contextTokens: number
}

// a bound on the rotary tables and on what a request may hold in memory
const maxWindow = 131_072

const refuseScaledRope = (metadata: Metadata): void => {
  const scaling = metadata.get("llama.rope.scaling.type")
  if (scaling !== undefined && scaling !== "none") throw new Damaged(`its rotary embedding is scaled ('${scaling}'), which this backend can't do`)
}

/** Throws `Damaged` for another architecture or an impossible shape. */
export const llamaConfig = (file: GgufFile): LlamaConfig => {
  const { metadata } = file.header
  const architecture = textIn(metadata, "general.architecture")
  if (architecture !== "llama") throw new Damaged(`its architecture is '${architecture}'; this backend runs 'llama'`)
  refuseScaledRope(metadata)
  const width = countIn(metadata, "llama.embedding_length", 65_536)
  const heads = countIn(metadata, "llama.attention.head_count", 1024)
  const kvHeads = metadata.has("llama.attention.head_count_kv") ? countIn(metadata, "llama.attention.head_count_kv", heads) : heads
  const headSize = metadata.has("llama.attention.key_length") ? countIn(metadata, "llama.attention.key_length", 1024) : width / heads
  if (!Number.isInteger(headSize) || headSize % 2 || heads % kvHeads) throw new Damaged(`${heads} heads, ${kvHeads} of them for keys, don't fit a width of ${width}`)
  const rotary = metadata.has("llama.rope.dimension_count") ? countIn(metadata, "llama.rope.dimension_count", 1024) : headSize
  if (rotary !== headSize) throw new Damaged(`it rotates ${rotary} of ${headSize} dimensions, which this backend can't do`)
  return {
    layers: countIn(metadata, "llama.block_count", 512),
    width,
    feedForward: countIn(metadata, "llama.feed_forward_length", 1_048_576),
    heads,
    kvHeads,
    headSize,
    vocabulary: file.tensor("token_embd.weight").rows,
    normEpsilon: numberIn(metadata, "llama.attention.layer_norm_rms_epsilon"),
    ropeBase: metadata.has("llama.rope.freq_base") ? numberIn(metadata, "llama.rope.freq_base") : 10_000,
    contextTokens: Math.min(maxWindow, countIn(metadata, "llama.context_length", 2 ** 31)),
  }
}
