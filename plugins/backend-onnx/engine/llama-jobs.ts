import type { StageTime } from "./protocol.ts"
import type { SamplerSettings } from "./sampler.ts"

export interface GenerateRequest {
  readonly kind: "generate"
  readonly promptIds: Int32Array
  readonly maxTokens: number
  readonly sampler: SamplerSettings
  readonly seed: number
  readonly stop: readonly string[]
}

/** Asks how the model would answer each prompt in one word. */
export interface ScoreRequest {
  readonly kind: "score"
  readonly prompts: readonly Int32Array[]
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}

export type LlamaRequest = GenerateRequest | ScoreRequest

export type LlamaEvent =
  | StageTime
  /** Cumulative. */
  | { readonly type: "prefilled"; readonly inputTokens: number }
  /** `text` may be empty: a token may be half a character. */
  | { readonly type: "token"; readonly text: string; readonly outputTokens: number }
  | { readonly type: "finish"; readonly text: string; readonly reason: "stop" | "length" }
  | { readonly type: "score"; readonly index: number; readonly score: number }

export interface LlamaInfo {
  /** The built graph's; the tokenizer lies in it too. */
  readonly folder: string
  readonly contextTokens: number
  readonly vocabulary: number
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}
