import type { Grammar } from "../grammar/constraint.ts"
import type { TextToTokenEncoder } from "../tokenizer/text-to-token-encoder.ts"
import type { CachedDecoder } from "./cached-decoder.ts"
import type { PacedConstraint } from "./constrained-decoding.ts"
import type { KvCache } from "./kv-cache.ts"
import type { PrefixCache } from "./prefix-cache.ts"

/** An open model, as its jobs use it. */
export interface Model {
  readonly session: CachedDecoder
  readonly prefixes: PrefixCache
  readonly endTokens: ReadonlySet<number>
  readonly startsWithSpace: boolean
  readonly vocabulary: number
  readonly constraints: { open(grammar: Grammar): PacedConstraint }
  readonly textEncoder: TextToTokenEncoder
  bytesOf(token: number): Uint8Array
}

/** A prompt that was read, from which another answer can begin. */
export interface ReadPrompt {
  readonly cache: KvCache
  readonly logits: Float32Array
  /** Tokens that were read in whole chunks. */
  readonly wholeTokens: number
}

/** Where an answer begins: with a prompt that was read, or by reading it for others, too. */
export interface Beginning {
  readonly prompt?: ReadPrompt
  readonly keep?: (prompt: ReadPrompt) => void
}
