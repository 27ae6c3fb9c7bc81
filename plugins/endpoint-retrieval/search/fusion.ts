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
