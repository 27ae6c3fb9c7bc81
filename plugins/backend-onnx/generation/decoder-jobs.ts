import type { Grammar } from "../grammar/constraint.ts"
import type { Piece } from "../sampling/incremental-detokenizer.ts"
import type { SamplerSettings } from "../sampling/sampler.ts"
import type { StageTime } from "../worker/protocol.ts"

export interface GenerateRequest {
  readonly kind: "generate"
  /** Whose prefix cache it reads and writes. */
  readonly owner: string
  readonly promptIds: Int32Array
  /** Where marked prefixes end, in tokens, rising. */
  readonly cacheBreakpoints: readonly number[]
  readonly maxTokens: number
  readonly sampler: SamplerSettings
  readonly seed: number
  /** The same text for the same seed, whatever else runs and whatever the cache holds. */
  readonly isRepeatable: boolean
  readonly stop: readonly string[]
  /** Stop strings count from the end of this text on: what comes before it is no part of what the client asked to be cut. */
  readonly stopAfter?: string
  /** Alternatives to report for each token; absent: no log-probabilities. */
  readonly topLogprobs?: number
  /** Control tokens by their text that are part of the answer's text: `[TOOL_CALLS]`, or `</think>`, where they have no letters. */
  readonly markers?: Readonly<Record<string, number>>
  /** What the answer must look like. */
  readonly grammar?: {
    readonly grammar: Grammar
    /** Close the document in time, so that it is whole when the tokens end. */
    readonly closeOnLength: boolean
    /** The grammar rules from the end of this text on (free reasoning before it); absent: from the first token. */
    readonly after?: string
    /** Stop strings don't cut a document that the grammar rules; where the grammar leaves free text first, they count until this text appears. */
    readonly stopUntil?: string
  }
}

/** Asks how the model would answer each prompt in one word. */
export interface ScoreRequest {
  readonly kind: "score"
  readonly prompts: readonly Int32Array[]
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}

export type DecoderRequest = GenerateRequest | ScoreRequest

export type DecoderEvent =
  | StageTime
  /** Cumulative. The two of the cache count marked prefixes only. */
  | {
      readonly type: "prefilled"
      readonly inputTokens: number
      readonly cacheReadTokens: number
      readonly cacheWriteTokens: number
    }
  /** `text` may be empty: a token may be half a character. */
  | ({ readonly type: "token"; readonly outputTokens: number } & Piece)
  | ({ readonly type: "finish"; readonly reason: "stop" | "length" } & Piece)
  | { readonly type: "score"; readonly index: number; readonly score: number }

export interface DecoderInfo {
  /** The built graph's; the tokenizer lies in it too. */
  readonly folder: string
  /** As far as the memory for keys and values reaches. */
  readonly contextTokens: number
  readonly vocabulary: number
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}
