export interface RankedToken {
  readonly id: number
  readonly logprob: number
}

export interface ChosenLogprobs {
  readonly logprob: number
  /** The likeliest tokens, in falling order. */
  readonly top: readonly RankedToken[]
}

// stands for minus infinity, which JSON can't represent
const least = -9999

const logSumExp = (logits: Float32Array): number => {
  let largest = Number.NEGATIVE_INFINITY
  for (const logit of logits) if (logit > largest) largest = logit
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - largest)
  return largest + Math.log(sum)
}

const likeliest = (logits: Float32Array, count: number): readonly number[] => {
  const best: number[] = []
  if (count > 0)
    for (let id = 0; id < logits.length; id++) {
      if (best.length === count && logits[id]! <= logits[best[count - 1]!]!) continue
      let at = best.length
      while (at > 0 && logits[best[at - 1]!]! < logits[id]!) at--
      best.splice(at, 0, id)
      if (best.length > count) best.pop()
    }
  return best
}

/**
 * Returns the model's own log-probabilities (log-softmax of `logits [V]`), before temperature,
 * penalties and bias. Call it before the sampler overwrites the logits.
 */
export const logprobsOf = (
  logits: Float32Array,
  count: number,
): ((chosen: number) => ChosenLogprobs) => {
  const total = logSumExp(logits)
  const of = (id: number, logit: number): RankedToken => ({
    id,
    logprob: Math.max(least, logit - total),
  })
  const top = likeliest(logits, count).map((id) => of(id, logits[id]!))
  const plain = logits.slice()
  return (chosen) => ({ logprob: of(chosen, plain[chosen]!).logprob, top })
}
