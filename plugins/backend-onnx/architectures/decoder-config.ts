import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import type { Rotary } from "./rotary.ts"

/** The sizes of a decoder that its callers need. */
export interface DecoderShape {
  readonly layers: number
  readonly kvHeads: number
  readonly headSize: number
  readonly vocabulary: number
  /** The model's own window, in tokens. */
  readonly contextTokens: number
  /**
   * Sequences that may get longer than so many tokens are rotated in another way, from their first
   * token on (LongRoPE); absent: all are rotated alike.
   */
  readonly longAfter?: number
  /**
   * The pairs of a head that turn by a token's time, by its row and by its column (multimodal RoPE,
   * Wang et al., arXiv 2409.12191), which are all its place where it is text; absent: places only.
   */
  readonly sections?: readonly number[]
}

/** Architectures that the decoder graph implements. */
export type Architecture =
  | "llama"
  | "mistral"
  | "qwen2"
  | "qwen3"
  | "gemma3"
  | "smollm3"
  | "phi3"
  | "qwen3moe"

/** Architectures by their names in a file format. */
export type ArchitectureNames = Readonly<Record<string, Architecture>>

export const architectureNamed = (name: string, known: ArchitectureNames): Architecture => {
  const architecture = Object.hasOwn(known, name) ? known[name] : undefined
  if (!architecture)
    throw new Unsupported(
      `its architecture is '${name}'; this backend runs ${Object.keys(known).join(", ")}`,
    )
  return architecture
}

/** Layers whose feed-forward is a choice among experts (Shazeer et al., arXiv 1701.06538). */
export interface Experts {
  readonly count: number
  /** How many of them each token goes to. */
  readonly used: number
  /** Width inside an expert. */
  readonly feedForward: number
  /** The weights of the chosen ones add up to one. */
  readonly isNormalized: boolean
  /** Whether each layer has experts. */
  readonly layers: readonly boolean[]
}

/** The configuration of a decoder of one of these architectures. */
export interface DecoderConfig extends DecoderShape {
  readonly architecture: Architecture
  /** Width of the residual stream (hidden size). */
  readonly width: number
  readonly feedForward: number
  readonly heads: number
  readonly normEpsilon: number
  /** Rotary embedding of each layer, as one object where it is the same; undefined: none. */
  readonly rotary: readonly (Rotary | undefined)[]
  /**
   * Sliding window of each layer in tokens, the current one included; undefined: full attention.
   */
  readonly windows: readonly (number | undefined)[]
  /** The output head is the embedding table (tied weights). */
  readonly tiedHead: boolean
  /** Whether products have biases; undefined: those that are in the file. */
  readonly biases?: {
    readonly attention: boolean | undefined
    readonly feedForward: boolean | undefined
  }
  /** Queries and keys are normalized head by head (QK norm, Qwen3). */
  readonly headNorms: boolean
  /** The outputs of attention and feed-forward are normalized, too (Gemma). */
  readonly outerNorms: boolean
  readonly activation: "silu" | "gelu"
  readonly experts?: Experts
  /** Factor of the embeddings that enter the first layer. */
  readonly embeddingScale: number
  /** Factor of the products of queries and keys. */
  readonly attentionScale: number
}

// a bound on the rotary tables and on what a request may hold in memory
const maxWindow = 131_072

/** The largest values that a configuration may claim. */
export const limits = {
  layers: 512,
  experts: 1024,
  width: 65_536,
  feedForward: 1_048_576,
  heads: 1024,
  headSize: 1024,
  contextTokens: 2 ** 31,
}

/** Returns the epsilon of the norms; throws `Damaged` for one that a norm can't have. */
export const epsilonOf = (key: string, value: number): number => {
  if (value < 0) throw new Damaged(`'${key}' is ${value}, which is less than 0`)
  return value
}

/** Returns the configuration; throws `Damaged` for inconsistent sizes. */
export const checked = (config: DecoderConfig): DecoderConfig => {
  const { heads, kvHeads, headSize, width, windows } = config
  if (!Number.isInteger(headSize) || headSize < 2 || headSize % 2 || heads % kvHeads)
    throw new Damaged(`${heads} heads, ${kvHeads} of them for keys, don't fit a width of ${width}`)
  for (const window of windows)
    if (window !== undefined && !(Number.isInteger(window) && window > 0))
      throw new Damaged(`a sliding window of ${window} tokens is impossible`)
  const contextTokens = Math.min(maxWindow, config.contextTokens)
  const { longAfter, ...rest } = config
  return {
    ...rest,
    ...(longAfter !== undefined && longAfter < contextTokens && { longAfter }),
    contextTokens,
    windows: windows.map((window) =>
      window !== undefined && window < contextTokens ? window : undefined,
    ),
  }
}
