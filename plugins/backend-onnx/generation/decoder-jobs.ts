import type { Grammar } from "../grammar/constraint.ts"
import type { SharedVocabulary } from "../grammar/grammar-vocabulary.ts"
import type { Piece } from "../sampling/incremental-detokenizer.ts"
import type { SamplerSettings } from "../sampling/sampler.ts"
import type { AdapterChoice } from "../sessions/decoder.ts"
import type { TokenGrid } from "../sessions/token-places.ts"
import type { StageTime } from "../worker/protocol.ts"

export interface GenerateRequest {
  readonly kind: "generate"
  /** Whose prefix cache the request reads and writes. */
  readonly owner: string
  /** Below 0 where `embedded` has a row: a number that is the same for the same row only. */
  readonly promptIds: Int32Array
  /** Rows that the decoder reads in place of the tokens below 0, in their order. */
  readonly embedded?: readonly Float32Array[]
  /** Rows and columns of the images in the prompt, for models that know them. */
  readonly grids?: readonly TokenGrid[]
  readonly adapter?: AdapterChoice
  /** Where cached prefixes end, in tokens, rising. */
  readonly cacheBreakpoints: readonly number[]
  readonly maxTokens: number
  readonly sampler: SamplerSettings
  readonly seed: number
  /** Further answers to the prompt, by their seeds. */
  readonly furtherSeeds?: readonly number[]
  readonly stop: readonly string[]
  /** Stop strings are searched from the end of this text on; reasoning before it is not cut. */
  readonly stopAfter?: string
  /** The number of alternatives to report for each token; absent: no log-probabilities. */
  readonly topLogprobs?: number
  /**
   * Ids of control tokens, by text, that count as text of the answer, such as `[TOOL_CALLS]` or
   * `</think>`.
   */
  readonly markers?: Readonly<Record<string, number>>
  /** What the answer must look like. */
  readonly grammar?: {
    readonly grammar: Grammar
    /** Complete the document before `maxTokens` is reached. */
    readonly closeOnLength: boolean
    /**
     * The grammar applies from the end of this text on (reasoning before it is free); absent: from
     * the first token.
     */
    readonly after?: string
    /**
     * Stop strings don't cut a constrained document; where the grammar allows free text first, they
     * are searched until this text appears.
     */
    readonly stopUntil?: string
  }
}

/** Asks how much likelier than no the model would answer yes to each prompt. */
export interface ScoreRequest {
  readonly kind: "score"
  /** Whose prefix cache the request reads and writes. */
  readonly owner: string
  readonly prompts: readonly Int32Array[]
  readonly yesTokens: readonly number[]
  readonly noTokens: readonly number[]
}

export type DecoderRequest = GenerateRequest | ScoreRequest

/** `answer`: which answer of several; absent: the first. */
export type DecoderEvent = { readonly answer?: number } & (
  | StageTime
  /** Cumulative counts. Those of the cache cover prefixes with a cache breakpoint only. */
  | {
      readonly type: "prefilled"
      readonly inputTokens: number
      readonly cacheReadTokens: number
      readonly cacheWriteTokens: number
    }
  /** `text` may be empty: a token may be half a character. */
  | ({ readonly type: "token"; readonly outputTokens: number } & Piece)
  /** `isWhole`: the document is, where it was to be closed before the tokens run out. */
  | ({
      readonly type: "finish"
      readonly reason: "stop" | "length"
      readonly isWhole?: boolean
    } & Piece)
  | { readonly type: "score"; readonly index: number; readonly score: number }
)

/** The tokens of a word: that of its plain spelling, and of all spellings. */
export interface Spellings {
  readonly one: readonly number[]
  readonly all: readonly number[]
}

export interface DecoderInfo {
  /** Folder of the built graph, in which the tokenizer is stored too. */
  readonly folder: string
  /** The model's window, limited by the memory for keys and values. */
  readonly contextTokens: number
  readonly vocabulary: number
  /** The tokens as grammars read them. */
  readonly grammarVocabulary: SharedVocabulary
  /** Its chat template can make it think. */
  readonly thinks: boolean
  /** Its chat template writes today's date into prompts. */
  readonly isDated: boolean
  /** What the model's files say to sample answers with. */
  readonly advisedTemperature?: number
  /** This CPU or device may compute the same tokens differently in other company; exports are not asked. */
  readonly roundingDiffers: boolean
  /** Digest of the model's files, its precision and the graph; absent: answers can't be repeated. */
  readonly digest?: string
  /** Digests of the files of adapters, by their ids. */
  readonly adapterDigests: Readonly<Record<string, string>>
  /** Tokens that say yes, and no. */
  readonly yesTokens: Spellings
  readonly noTokens: Spellings
}
