/** The median; NaN for no values. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  return sorted.length % 2 === 1
    ? sorted[Math.floor(middle)]!
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}

export const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[
    Math.min(values.length - 1, Math.floor(values.length * share))
  ] ?? Number.NaN

/** Results of each side, a value for each round, in the order of the rounds. */
export type Rounds<Result> = ReadonlyMap<string, readonly Result[]>

/**
 * Measures every side once a round, there and back (A B C, C B A, ...), so that a slow drift of the
 * machine affects all alike.
 */
export const alternate = async <Side extends { readonly name: string }, Result>(
  sides: readonly Side[],
  rounds: number,
  measure: (side: Side) => Promise<Result>,
): Promise<Rounds<Result>> => {
  const results = new Map<string, Result[]>(sides.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++)
    for (const side of round % 2 === 0 ? sides : [...sides].reverse())
      results.get(side.name)!.push(await measure(side))
  return results
}

export const medianOf = <Result>(
  rounds: Rounds<Result>,
  side: string,
  figure: (result: Result) => number,
): number => median((rounds.get(side) ?? []).map(figure))

/** The median of the ratios within each round: what slowed a whole round cancels out. */
export const ratioOf = <Result>(
  rounds: Rounds<Result>,
  side: string,
  against: string,
  figure: (result: Result) => number,
): number => {
  const others = rounds.get(against) ?? []
  return median(
    (rounds.get(side) ?? []).map((result, round) => figure(result) / figure(others[round]!)),
  )
}
