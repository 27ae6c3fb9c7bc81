/** Ranks from 1; equal values share the mean of theirs. */
const ranksOf = (values: readonly number[]): Float64Array => {
  const order = values.map((_, i) => i).sort((a, b) => values[a]! - values[b]!)
  const ranks = new Float64Array(values.length)
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]!] === values[order[from]!]) to++
    for (let i = from; i < to; i++) ranks[order[i]!] = (from + 1 + to) / 2
    from = to
  }
  return ranks
}

/** Spearman's rank correlation of two lists of the same length: Pearson's, of the ranks. */
export const spearman = (a: readonly number[], b: readonly number[]): number => {
  const [left, right] = [ranksOf(a), ranksOf(b)]
  const middle = (a.length + 1) / 2
  let [ab, aa, bb] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [left[i]! - middle, right[i]! - middle]
    ab += x * y
    aa += x * x
    bb += y * y
  }
  return ab / Math.sqrt(aa * bb)
}
