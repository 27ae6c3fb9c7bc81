import { Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { VectorQuery } from "../vectors/vector-store.ts"
import type { SearchDeps } from "./deps.ts"
import { nameOf, type Passage, readPassages } from "./passages.ts"
import { countReindexing, type Restriction, rangesOf } from "./scope.ts"

export interface SearchRequest extends Omit<VectorQuery, "ranges">, Restriction {}

/** A passage with the score of the last stage, 0 to 1. */
export interface Found extends Passage {
  readonly score: number
}

export interface SearchResult {
  /** Best first. */
  readonly found: readonly Found[]
  /** Documents that can't be found now, as they are in another space. */
  readonly reindexing: number
}

const within0And1 = (cosine: number): number => Math.min(1, Math.max(0, cosine))

export const search = (
  deps: SearchDeps,
  request: SearchRequest,
): Effect.Effect<SearchResult, PortError> =>
  Effect.gen(function* () {
    const { tenant, space } = request
    const ranges = yield* rangesOf(deps, tenant, space, request)
    const hits =
      ranges?.length === 0
        ? []
        : yield* deps.vectors.search({ ...request, ...(ranges && { ranges }) })
    const passages = yield* readPassages(deps, tenant, space, hits)
    const found = hits.flatMap((hit) => {
      const passage = passages.get(nameOf(hit))
      return passage ? [{ ...passage, score: within0And1(hit.score) }] : []
    })
    return { found, reindexing: yield* countReindexing(deps, tenant, space) }
  })
