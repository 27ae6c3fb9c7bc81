import { drawLikely } from "./likely.ts"
import { passes } from "./logits.ts"
import { dropBelow, keepLikeliest, keepNucleus } from "./nucleus.ts"
import type { Random } from "./random.ts"
import { allowedTokens, allows, GrammarFailed, type TokenMask } from "./token-mask.ts"

/** Sampling parameters of the chat request. */
export interface SamplerSettings {
  /** 0 is greedy. */
  readonly temperature: number
  readonly topP: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  readonly logitBias: readonly (readonly [number, number])[]
  readonly topK?: number
  readonly minP?: number
  readonly repetitionPenalty?: number
}

/**
 * Throws where a logit is NaN or positive infinity: such a request fails alone. Minus infinity
 * forbids a token.
 */
export const assertLogits = (logits: Float32Array): void => {
  if (Number.isNaN(passes.largest(logits))) throw new Error("the model's logits are not numbers")
}

/**
 * Replaces logits by exp(logit / temperature), scaled so that the largest is 1. Returns the sum.
 */
const unnormalized = (logits: Float32Array, largest: number, temperature: number): number => {
  if (largest > Number.NEGATIVE_INFINITY) return passes.weigh(logits, largest, 1 / temperature)
  logits.fill(0)
  return 0
}

// a lower temperature would overflow
const coldest = 1e-9
// listing the allowed tokens is faster up to this share of the vocabulary
const listedShare = 1 / 4

/** Chooses tokens for one request; counts them for the penalties. */
export class Sampler {
  private readonly settings: SamplerSettings
  private readonly random: Random
  /** How often the answer has each of its tokens. */
  private readonly counts = new Map<number, number>()
  /** Tokens of the prompt; absent: without a penalty for them. */
  private readonly prompt: ReadonlySet<number> | undefined

  constructor(settings: SamplerSettings, random: Random, promptIds: Iterable<number> = []) {
    this.settings = settings
    this.random = random
    // below 0 are rows of images, no tokens
    if ((settings.repetitionPenalty ?? 1) !== 1)
      this.prompt = new Set([...promptIds].filter((id) => id >= 0))
  }

  /** Applies penalties and bias to `logits` in place. */
  private adjust(logits: Float32Array): void {
    const { frequencyPenalty, presencePenalty, logitBias, repetitionPenalty = 1 } = this.settings
    const repeated = (id: number) => {
      logits[id] = logits[id]! * (logits[id]! > 0 ? 1 / repetitionPenalty : repetitionPenalty)
    }
    if (this.prompt) {
      for (const id of this.prompt) repeated(id)
      for (const id of this.counts.keys()) if (!this.prompt.has(id)) repeated(id)
    }
    if (frequencyPenalty || presencePenalty)
      for (const [id, count] of this.counts)
        logits[id] = logits[id]! - frequencyPenalty * count - presencePenalty
    for (const [id, bias] of logitBias) if (id < logits.length) logits[id] = logits[id]! + bias
  }

  private choose(logits: Float32Array, largest = passes.largest(logits)): number {
    const { temperature, topP, topK = 0, minP = 0 } = this.settings
    if (temperature < coldest) return logits.indexOf(largest)
    let sum = unnormalized(logits, largest, temperature)
    if (topP >= 1 && topK === 0 && minP === 0) return passes.pick(logits, this.random() * sum)
    const likely = drawLikely(logits, sum, { topP, topK, minP }, this.random)
    if (likely !== undefined) return likely
    if (minP > 0) sum = dropBelow(logits, minP)
    if (topK > 0 && topK < logits.length) sum = keepLikeliest(logits, topK)
    if (topP < 1) sum = keepNucleus(logits, sum, topP)
    return passes.pick(logits, this.random() * sum)
  }

  private chooseAllowed(logits: Float32Array, mask: TokenMask): number {
    const few = allowedTokens(mask, logits.length, logits.length * listedShare)
    if (few?.length === 0) throw new GrammarFailed("the grammar allows no token")
    if (!few) {
      const id = this.choose(logits, passes.largestAllowed(logits, mask))
      if (allows(mask, id)) return id
      // the model gives none of the allowed tokens any probability
      return allowedTokens(mask, logits.length, logits.length)![0]!
    }
    if (few.length === 1) return few[0]!
    const own = new Float32Array(few.length)
    for (let i = 0; i < few.length; i++) own[i] = logits[few[i]!]!
    return few[this.choose(own)]!
  }

  /**
   * Returns the next token and overwrites the logits `[V]`. The mask must allow at least one token;
   * a forbidden one is never chosen, whatever bias and logits are.
   */
  next(logits: Float32Array, mask?: TokenMask): number {
    this.adjust(logits)
    const id = mask ? this.chooseAllowed(logits, mask) : this.choose(logits)
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1)
    return id
  }

  /** Forgets a token that the answer lost again. What was drawn for it is not drawn anew. */
  undo(id: number): void {
    const count = this.counts.get(id) ?? 0
    if (count > 1) this.counts.set(id, count - 1)
    else this.counts.delete(id)
  }
}
