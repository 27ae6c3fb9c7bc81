/** A batch that nobody works on. */
export interface Candidate {
  readonly id: string
  readonly tenant: string
}

export interface Places {
  /** Batches in work here, by tenant. */
  readonly running: ReadonlyMap<string, number>
  /** How many more there may be, and how many of one tenant. */
  readonly free: number
  readonly ofOneTenant: number
}

/** The tenant with the fewest is next; of one tenant the oldest batch, as `candidates` come in their order. */
export const chooseBatches = (
  candidates: readonly Candidate[],
  { running, free, ofOneTenant }: Places,
): readonly Candidate[] => {
  const counts = new Map(running)
  const countOf = ({ tenant }: Candidate) => counts.get(tenant) ?? 0
  const left = [...candidates]
  const chosen: Candidate[] = []
  while (chosen.length < free) {
    let best: Candidate | undefined
    for (const one of left)
      if (countOf(one) < ofOneTenant && (!best || countOf(one) < countOf(best))) best = one
    if (!best) return chosen
    left.splice(left.indexOf(best), 1)
    counts.set(best.tenant, countOf(best) + 1)
    chosen.push(best)
  }
  return chosen
}

/** Whose place a tenant may have that has none: one with the most, if that is more than one. Undefined: nobody has too many. */
export const whoYields = (
  candidates: readonly Candidate[],
  running: ReadonlyMap<string, number>,
): string | undefined => {
  if (!candidates.some(({ tenant }) => !running.has(tenant))) return undefined
  const [most] = [...running].sort(([, a], [, b]) => b - a)
  return most && most[1] > 1 ? most[0] : undefined
}
