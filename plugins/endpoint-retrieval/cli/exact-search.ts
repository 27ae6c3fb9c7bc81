import type { StoredVector } from "./audited-rows.ts"

const keyOf = ({ document, index }: Pick<StoredVector, "document" | "index">): string =>
  `${document}/${index}`

const dot = (a: Float32Array, b: Float32Array): number => {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

export interface AuditQuery {
  /** The chunk that it is the vector of, which is no hit of its own query. */
  readonly self: Pick<StoredVector, "document" | "index">
  /** Norm 1. */
  readonly vector: Float32Array
  /** What the index found, best first. */
  readonly found: readonly Pick<StoredVector, "document" | "index">[]
}

interface Comparison {
  readonly query: AuditQuery
  /** The best cosines, at most k, ascending. */
  readonly best: number[]
  /** The cosines of what the index found. */
  readonly found: Map<string, number | undefined>
}

export interface Recall {
  /** Hits of the exact scan, at most k a query. */
  readonly exact: number
  /** So many of them the index found, too. */
  readonly found: number
  /** Hits of the index that are not among the vectors of the account. */
  readonly foreign: number
}

// as far as a sum of floats depends on its order
const tolerance = 1e-5

const recallOf = ({ best, found }: Comparison): Recall => {
  const scores = [...found.values()]
  const worst = (best[0] ?? Number.POSITIVE_INFINITY) - tolerance
  const right = scores.filter((score) => score !== undefined && score >= worst).length
  return {
    exact: best.length,
    found: Math.min(right, best.length),
    foreign: scores.filter((score) => score === undefined).length,
  }
}

/**
 * Recall@k by brute force: every vector of the account is compared with every query. Hits with the
 * cosine of the k-th count as right, whichever of them the index chose.
 */
export class ExactSearch {
  private readonly comparisons: readonly Comparison[]
  private readonly k: number

  constructor(queries: readonly AuditQuery[], k: number) {
    this.k = k
    this.comparisons = queries.map((query) => {
      const others = query.found.filter((hit) => keyOf(hit) !== keyOf(query.self)).slice(0, k)
      return { query, best: [], found: new Map(others.map((hit) => [keyOf(hit), undefined])) }
    })
  }

  compare(stored: StoredVector): void {
    const key = keyOf(stored)
    for (const { query, best, found } of this.comparisons) {
      if (keyOf(query.self) === key) continue
      const score = dot(query.vector, stored.vector)
      if (found.has(key)) found.set(key, score)
      if (best.length === this.k && score <= best[0]!) continue
      const at = best.findIndex((other) => other > score)
      best.splice(at < 0 ? best.length : at, 0, score)
      if (best.length > this.k) best.shift()
    }
  }

  recall(): Recall {
    return this.comparisons.map(recallOf).reduce(
      (sum, one) => ({
        exact: sum.exact + one.exact,
        found: sum.found + one.found,
        foreign: sum.foreign + one.foreign,
      }),
      { exact: 0, found: 0, foreign: 0 },
    )
  }
}
