import { type ChunkName, nameOf } from "./passages.ts"

/** A chunk on a list that is sorted by score, best first. */
export interface Ranked extends ChunkName {
  readonly score: number
}

export interface WeightedList {
  readonly ranked: readonly Ranked[]
  /** 0 to 1; all weights together are 1. */
  readonly weight: number
}

/** A chunk of a lower share of the best score is not on the list by words that is fused. */
const leastShare = 0.5

/**
 * The chunks of a list by words that say something. One common word of the query puts a chunk on
 * that list, and ranks know no distance: chunks that are middling on both lists would be before the
 * one that alone has the number that was asked for.
 */
export const strongOf = (ranked: readonly Ranked[]): readonly Ranked[] => {
  const least = leastShare * (ranked[0]?.score ?? 0)
  return ranked.filter(({ score }) => score >= least)
}

/** How slowly the worth of a rank falls; 60 as in the paper. */
const k = 60

/**
 * Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a chunk has the weighted sum of
 * 1 / (k + rank) over the lists that it is on, scaled so that the first of all lists has 1. Equal
 * scores keep the order of the lists.
 */
export const fuse = (lists: readonly WeightedList[]): readonly Ranked[] => {
  const sums = new Map<string, { readonly chunk: ChunkName; score: number }>()
  for (const { ranked, weight } of lists)
    for (const [at, { document, index }] of ranked.entries()) {
      const name = nameOf({ document, index })
      const sum = sums.get(name) ?? { chunk: { document, index }, score: 0 }
      sum.score += (weight * (k + 1)) / (k + at + 1)
      sums.set(name, sum)
    }
  return Array.from(sums.values(), ({ chunk, score }) => ({ ...chunk, score }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
}
