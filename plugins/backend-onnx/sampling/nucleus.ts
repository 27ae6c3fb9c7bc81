/**
 * Positive floats are ordered as their bits are: exponent and five bits of the fraction number a
 * bucket.
 */
const bucketBits = 18
const bucketSums = new Float64Array(2 ** (31 - bucketBits))
const bucketCounts = new Uint32Array(bucketSums.length)

/**
 * The bucket in which the cumulative weight of the likeliest tokens reaches `enough`, and the
 * weight of the buckets above it.
 */
const lastBucket = (
  weights: Float32Array,
  bits: Uint32Array,
  enough: number,
): { readonly bucket: number; readonly above: number } => {
  bucketSums.fill(0)
  for (let id = 0; id < bits.length; id++) {
    const bucket = bits[id]! >>> bucketBits
    bucketSums[bucket] = bucketSums[bucket]! + weights[id]!
  }
  let above = 0
  for (let bucket = bucketSums.length - 1; bucket > 0; bucket--) {
    const own = bucketSums[bucket]!
    if (own > 0 && above + own >= enough) return { bucket, above }
    above += own
  }
  return { bucket: 0, above }
}

/**
 * Top-p (nucleus) sampling: Holtzman et al., The Curious Case of Neural Text Degeneration, 2019.
 * Sets all but the likeliest tokens that together have at least
 * `topP` of the `sum` of `weights` (`[V]`, 0 to 1) to 0, and returns the sum that is left. At least
 * one token is left, however small `topP` is; of equal ones those with the lower ids.
 * Only the bucket in which the share is reached is sorted: to sort a flat distribution over 50,000
 * tokens takes tens of milliseconds, at every token.
 */
export const keepNucleus = (weights: Float32Array, sum: number, topP: number): number => {
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length)
  const { bucket, above } = lastBucket(weights, bits, topP * sum)
  const [least, next] = [bucket << bucketBits, (bucket + 1) << bucketBits]
  const edge: number[] = []
  for (let id = 0; id < bits.length; id++) {
    if (bits[id]! < least) weights[id] = 0
    else if (bits[id]! < next && bits[id]! > 0) edge.push(id)
  }
  edge.sort((a, b) => weights[b]! - weights[a]! || a - b)
  let kept = above
  for (const id of edge) {
    if (kept > 0 && kept >= topP * sum) weights[id] = 0
    else kept += weights[id]!
  }
  return kept
}

/**
 * Top-k sampling: sets all but the `count` likeliest tokens to 0, and returns the sum that is left;
 * of equal ones those with the lower ids are kept.
 */
export const keepLikeliest = (weights: Float32Array, count: number): number => {
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length)
  bucketCounts.fill(0)
  for (let id = 0; id < bits.length; id++) bucketCounts[bits[id]! >>> bucketBits]!++
  let left = count
  let bucket = bucketCounts.length - 1
  while (bucket > 0 && bucketCounts[bucket]! < left) left -= bucketCounts[bucket--]!
  const [least, next] = [bucket << bucketBits, (bucket + 1) << bucketBits]
  const edge: number[] = []
  let kept = 0
  for (let id = 0; id < bits.length; id++) {
    if (bits[id]! < least) weights[id] = 0
    else if (bits[id]! >= next) kept += weights[id]!
    else if (bits[id]! > 0) edge.push(id)
  }
  edge.sort((a, b) => weights[b]! - weights[a]! || a - b)
  for (const [rank, id] of edge.entries()) {
    if (rank < left) kept += weights[id]!
    else weights[id] = 0
  }
  return kept
}

/** Min-p sampling: sets weights below `least` to 0, and returns the sum that is left. */
export const dropBelow = (weights: Float32Array, least: number): number => {
  let kept = 0
  for (let id = 0; id < weights.length; id++) {
    if (weights[id]! < least) weights[id] = 0
    else kept += weights[id]!
  }
  return kept
}
