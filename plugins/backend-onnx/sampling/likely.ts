import { passes } from "./logits.ts"
import type { Random } from "./random.ts"

export interface LikelySettings {
  readonly topP: number
  /** 0: all. */
  readonly topK: number
  /** 0: all. */
  readonly minP: number
}

/** Weights from which on tokens are listed, one after the other, until enough are in the list. */
const leasts = [0.05, 1e-3, 1e-5]
const tokens = new Int32Array(1_024)
const keys = new Float64Array(tokens.length)
/** Tokens are below it, so that a weight's bits and a token are one integer of 51 bits. */
const tokenRange = 2 ** 21

/** Sorts the listed tokens by their weights; of equal ones those with the lower ids come first. */
const sortListed = (weights: Float32Array, count: number): void => {
  // positive floats are ordered as their bits are
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length)
  for (let i = 0; i < count; i++) {
    const id = tokens[i]!
    keys[i] = bits[id]! * tokenRange + (tokenRange - 1 - id)
  }
  const sorted = keys.subarray(0, count).sort()
  for (let i = 0; i < count; i++) tokens[i] = tokenRange - 1 - (sorted[count - 1 - i]! % tokenRange)
}

const sumOf = (weights: Float32Array, count: number): number => {
  let sum = 0
  for (let i = 0; i < count; i++) sum += weights[tokens[i]!]!
  return sum
}

/** Whether all that count are in the list, where there is no min-p. */
const isEnough = (
  weights: Float32Array,
  listed: number,
  sum: number,
  { topP, topK }: LikelySettings,
): boolean => (topK > 0 ? listed >= topK : sumOf(weights, listed) >= topP * sum)

/** Returns how many of the sorted tokens count, and their sum. */
const kept = (
  weights: Float32Array,
  listed: number,
  sumOfAll: number,
  { topP, topK, minP }: LikelySettings,
) => {
  const most = topK > 0 ? Math.min(topK, listed) : listed
  const sum = topK > 0 || minP > 0 ? sumOf(weights, most) : sumOfAll
  if (topP >= 1) return { count: most, sum }
  let own = 0
  for (let i = 0; i < most; i++) {
    own += weights[tokens[i]!]!
    if (own >= topP * sum) return { count: i + 1, sum: own }
  }
  return { count: most, sum: own }
}

/**
 * Draws by top-p, top-k and min-p from the likeliest tokens, which are few for most distributions.
 * `weights` are 0 to 1, the largest 1, and `sum` is theirs. Returns undefined where a list of 1,024
 * does not have all that count, and draws nothing then.
 */
export const drawLikely = (
  weights: Float32Array,
  sum: number,
  settings: LikelySettings,
  random: Random,
): number | undefined => {
  if (weights.length > tokenRange) return undefined
  const { minP } = settings
  for (const least of minP > 0 ? [minP] : leasts) {
    const listed = passes.listLikely(weights, least, tokens)
    if (listed === 0 || listed > tokens.length) return undefined
    if (minP === 0 && !isEnough(weights, listed, sum, settings)) continue
    sortListed(weights, listed)
    const { count, sum: total } = kept(weights, listed, sum, settings)
    let left = random() * total
    for (let i = 0; i < count; i++) {
      left -= weights[tokens[i]!]!
      if (left < 0) return tokens[i]!
    }
    return tokens[count - 1]!
  }
  return undefined
}
