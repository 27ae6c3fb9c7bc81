import type { Random } from "./random.ts"

/** As in the chat request; `logitBias` as pairs, so that it crosses threads. */
export interface SamplerSettings {
  /** 0 is greedy. */
  readonly temperature: number
  readonly topP: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  readonly logitBias: readonly (readonly [number, number])[]
}

/** Throws where a number is no logit: such a request fails alone. Minus infinity forbids a token. */
export const assertLogits = (logits: Float32Array): void => {
  let isSound = true
  for (const logit of logits) isSound &&= logit < Number.POSITIVE_INFINITY
  if (!isSound) throw new Error("the model's logits are not numbers")
}

const argmax = (values: Float32Array): number => {
  let best = 0
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i
  return best
}

/** exp(logit / temperature), scaled so that the largest is 1, in place; answers the sum. */
const unnormalized = (logits: Float32Array, temperature: number): number => {
  let largest = Number.NEGATIVE_INFINITY
  for (const logit of logits) if (logit > largest) largest = logit
  let sum = 0
  for (let i = 0; i < logits.length; i++) {
    const weight = Math.exp((logits[i]! - largest) / temperature)
    logits[i] = weight
    sum += weight
  }
  return sum
}

const pick = (weights: Float32Array, ids: Iterable<number>, target: number): number => {
  let left = target
  let last = 0
  for (const id of ids) {
    const weight = weights[id]!
    if (weight <= 0) continue
    last = id
    left -= weight
    if (left < 0) return id
  }
  return last
}

/** The likeliest tokens that together have at least `topP` of `sum`, in falling order, with their own sum. */
const nucleus = (weights: Float32Array, sum: number, topP: number): { readonly ids: readonly number[]; readonly sum: number } => {
  // tokens below this floor have less than 1 - topP together, so none of them is in the nucleus
  const floor = ((1 - topP) * sum) / weights.length
  const candidates: number[] = []
  for (let id = 0; id < weights.length; id++) if (weights[id]! >= floor) candidates.push(id)
  candidates.sort((a, b) => weights[b]! - weights[a]! || a - b)
  let reached = 0
  let count = 0
  while (count < candidates.length && (count === 0 || reached < topP * sum)) reached += weights[candidates[count++]!]!
  return { ids: candidates.slice(0, count), sum: reached }
}

/** Chooses tokens for one request; remembers what it chose, for the penalties. */
export class Sampler {
  private readonly settings: SamplerSettings
  private readonly random: Random
  private readonly counts = new Map<number, number>()

  constructor(settings: SamplerSettings, random: Random) {
    this.settings = settings
    this.random = random
  }

  /** Changes `logits`. */
  private adjust(logits: Float32Array): void {
    const { frequencyPenalty, presencePenalty, logitBias } = this.settings
    if (frequencyPenalty || presencePenalty) for (const [id, count] of this.counts) logits[id] = logits[id]! - frequencyPenalty * count - presencePenalty
    for (const [id, bias] of logitBias) if (id < logits.length) logits[id] = logits[id]! + bias
  }

  private choose(logits: Float32Array): number {
    const { temperature, topP } = this.settings
    if (temperature <= 0) return argmax(logits)
    const sum = unnormalized(logits, temperature)
    if (topP >= 1) return pick(logits, logits.keys(), this.random() * sum)
    const kept = nucleus(logits, sum, topP)
    return pick(logits, kept.ids, this.random() * kept.sum)
  }

  /** Takes the logits over: they are overwritten. */
  next(logits: Float32Array): number {
    this.adjust(logits)
    const id = this.choose(logits)
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1)
    return id
  }
}
