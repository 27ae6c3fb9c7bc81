import type { TokenPair } from "../chat-format/rerank-pairs.ts"
import type { StageTime } from "../worker/protocol.ts"

/** A text as token ids, special tokens included, or a pair. */
export type EncoderInput = Int32Array | TokenPair

export const idsOf = (input: EncoderInput): Int32Array =>
  input instanceof Int32Array ? input : input.ids

export const tokensOf = (input: EncoderInput): number => idsOf(input).length

/**
 * Tokens of a text or pair that are read at once, also where a model could read more: the scores of
 * attention grow with the square (16 heads of 2,048 tokens: 268 MB), and nothing else runs during a
 * step.
 */
export const longestWindow = 2_048

export interface EmbedJobRequest {
  readonly texts: readonly EncoderInput[]
}

export type EmbedJobEvent =
  | StageTime
  | { readonly type: "vector"; readonly index: number; readonly vector: Float32Array }

/** Where an instruction is in a template. */
export const instructionMark = "{instruction}"

/** What a model wants before its texts. */
export interface Prompts {
  /** Before texts of requests without an instruction. */
  readonly byDefault: string
  /** By the names that the model's authors gave them, such as `query`. */
  readonly named: Readonly<Record<string, string>>
  /** How an instruction is before a text, with `{instruction}` where it is. */
  readonly instructionTemplate?: string | undefined
}

export interface EncoderInfo {
  /** The maximum number of tokens that are read at once, special tokens included. */
  readonly maxTokens: number
  /** Token ids are below it. */
  readonly vocabulary: number
  readonly name: string
  /** Digest of the weights. */
  readonly digest: string
  /** Digest of files, precision and graph; absent where a device computes. */
  readonly modelDigest?: string
  readonly prompts: Prompts
  /** A vector of the embedding space for each text, or `[logit]` of a classifier for each pair. */
  readonly output: "vector" | "score"
  /** Length of the model's own vectors, before their map into the embedding space; 1 for logits. */
  readonly width: number
  /** Part of the embedding space's id: vectors of another map are not comparable. */
  readonly map: string
}

/**
 * The inputs of one request, texts or images, and the indices of those that are not embedded yet,
 * sorted by length.
 */
export class EmbedJob<Input = EncoderInput> {
  readonly inputs: readonly Input[]
  /** Tokens of each text. */
  readonly lengths: readonly number[]
  readonly waiting: number[]
  private readonly emit: (event: EmbedJobEvent) => void
  private readonly arrivedMs = performance.now()
  private hasBegun = false
  private spentMs = 0

  constructor(
    inputs: readonly Input[],
    lengthOf: (input: Input) => number,
    emit: (event: EmbedJobEvent) => void,
  ) {
    this.inputs = inputs
    this.lengths = inputs.map(lengthOf)
    this.emit = emit
    this.waiting = inputs
      .map((_, index) => index)
      .sort((a, b) => this.lengths[a]! - this.lengths[b]! || a - b)
  }

  /** Called when a step takes its first input; reports the queue time once. */
  begin(): void {
    if (!this.hasBegun)
      this.emit({ type: "time", stage: "queue", durationMs: performance.now() - this.arrivedMs })
    this.hasBegun = true
  }

  /**
   * Emits the vector of an input; `vector` is a copy of its own, so it may cross to another thread.
   */
  take(index: number, vector: Float32Array): void {
    this.waiting.splice(this.waiting.indexOf(index), 1)
    this.emit({ type: "vector", index, vector })
  }

  /** Adds the duration of a step with inputs of this request. Returns true after the last one. */
  spent(durationMs: number): boolean {
    this.spentMs += durationMs
    if (this.waiting.length) return false
    this.emit({ type: "time", stage: "prefill", durationMs: this.spentMs })
    return true
  }
}
